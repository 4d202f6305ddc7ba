#pragma once

// A program as a JSON tree: schedule, stages, chains and blocks with their operations.

#include <string>

#include "model/program.hpp"

namespace forerun {

std::string program_json(const Program& program);

}  // namespace forerun

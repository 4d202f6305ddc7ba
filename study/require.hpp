#pragma once

// Conditions on a forecast, as a gate before a launch: "fits && peak_mem_gib < 75 || mfu >= 0.4".

#include <string>

#include "model/forecast.hpp"

namespace forerun {

/// Names are those of `predict --json` (numbers, and fits); operators < <= > >= == != && || ! and
/// parentheses. Throws InputError at --require for text that is no such condition.
bool holds(const std::string& condition, const Forecast& forecast);

}  // namespace forerun

#pragma once

// The strategies, one a file; register.cpp is the table.

#include "model/sharding/strategy.hpp"

namespace forerun {

std::unique_ptr<ShardingStrategy> make_fsdp2(const SoftwareStack& software, const Costs& costs,
                                             ProgramPool& pool);

}  // namespace forerun

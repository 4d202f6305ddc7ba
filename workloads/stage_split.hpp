#pragma once

// Which layers each pipeline stage holds: the run's own list, else the software's rule.

#include <vector>

#include "workloads/job.hpp"

namespace forerun {

/// Layers of each of pp x virtual_stages stages, in order.
std::vector<int> layers_per_stage(const Scenario& scenario, const Plan& plan);

}  // namespace forerun

#pragma once

// Expert parallelism reuses ranks that other dimensions have: it is carved out of their product,
// innermost ranks first, so that experts lie close together.
//
//   pool of ranks   dp_shard x cp (x tp, where each expert is whole on its rank); where parameters
//                   are not sharded (zero_stage below 3), dp_replicate as well
//   expert group    the innermost ep ranks of the pool: together they hold all experts once
//   expert copies   the rest: ranks that hold the same experts, over which those are sharded and
//                   their gradients reduced

#include "topology/mesh.hpp"
#include "workloads/plan.hpp"

namespace forerun {

struct ExpertGroups {
  RankGroup experts;
  RankGroup copies;
};
ExpertGroups expert_groups(const Plan& plan);

/// Whether each expert is cut over tp: by etp, or because there is no expert group.
constexpr bool experts_cut(const Plan& plan) {
  return plan.tp > 1 && (plan.ep == 1 || plan.etp == plan.tp);
}

}  // namespace forerun

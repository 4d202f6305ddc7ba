#pragma once

// Data-parallel sharding: how parameters, gradients and optimizer states are cut over the ranks of
// a data-parallel group, and which operations that puts around the passes of the blocks. One
// strategy a file; register.cpp is the table.

#include <cstdint>
#include <memory>

#include "model/costing.hpp"
#include "model/optimizer.hpp"
#include "model/program.hpp"
#include "workloads/job.hpp"

namespace forerun {

/// One virtual stage of a rank, and what of the plan its sharding depends on.
struct StageParts {
  const CostedBlock* embedding = nullptr;  ///< null: the stage has none
  const CostedBlock* layer = nullptr;
  int layers = 0;
  const CostedBlock* head = nullptr;  ///< null: the stage has none
  Span shard;                         ///< the ranks over which parameters are cut (dp_shard x cp)
  Span replicate;                     ///< copies of the shards (dp_replicate)
  Span data;                          ///< all ranks that hold the same parameters before sharding
  int zero_stage = 3;
  OptimizerStates states;
  bool pipeline = false;     ///< pp > 1
  bool accumulates = false;  ///< more than one microbatch a step
  Reshard reshard = Reshard::kDefault;
  bool fp8 = false;

  bool operator==(const StageParts&) const = default;
};

/// Where a strategy puts the blocks and chains it makes.
class ShardingStrategy {
 public:
  virtual ~ShardingStrategy() = default;

  /// The chains of each action of a stage.
  virtual StageChains chains(const StageParts& stage) = 0;
  /// What the stage keeps on the rank from step to step, without messages between stages.
  [[nodiscard]] virtual Resident resident(const StageParts& stage) const = 0;
  /// Bytes of gradients that stay live between steps and are freed as a step begins.
  [[nodiscard]] virtual std::int64_t gradients_between_steps(const StageParts& stage) const = 0;
};

/// The strategy of a software stack for parameters cut over ranks (ZeRO 3 and 2), and the one for
/// parameters that every rank holds. `pool`, `costs` and `software` must outlive them.
std::unique_ptr<ShardingStrategy> make_sharding(const SoftwareStack& software, const Costs& costs,
                                                ProgramPool& pool);
std::unique_ptr<ShardingStrategy> make_replicas(const SoftwareStack& software, const Costs& costs,
                                                ProgramPool& pool);

}  // namespace forerun

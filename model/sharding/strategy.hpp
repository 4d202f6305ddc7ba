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

/// Where dense layers stand among those with experts, counted within a stage.
struct LayerPattern {
  int dense_first = 0;  ///< so many dense ones in front
  int every = 1;        ///< of the others each `every`-th holds experts,
  int phase = 0;        ///< the model's layer `phase` (modulo `every`) being the stage's first
  [[nodiscard]] bool experts(int layer) const {
    return layer >= dense_first && (phase + layer + 1) % every == 0;
  }
  bool operator==(const LayerPattern&) const = default;
};

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
  const CostedBlock* dense_layer = nullptr;  ///< where layers of both kinds stand in the stage
  LayerPattern pattern;                      ///< of those
  Span expert_shard;                         ///< the ranks over which experts are cut

  [[nodiscard]] const CostedBlock* layer_at(int i) const {
    return dense_layer == nullptr || pattern.experts(i) ? layer : dense_layer;
  }
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

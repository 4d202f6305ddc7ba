#pragma once

// From a plan to a program, memoised in three layers: the kernels of a block (shape), their
// durations on this hardware (cost), the chains of a stage (stage). Each layer is keyed by small
// integers, so that a sweep whose shape changes slowest lowers each shape once; the sharding
// strategy adds to the stage layer. All blocks lie in one pool.

#include <array>
#include <memory>
#include <vector>

#include "base/memo.hpp"
#include "model/block_kernels.hpp"
#include "model/cost/costs.hpp"
#include "model/costing.hpp"
#include "model/program.hpp"
#include "model/sharding/strategy.hpp"
#include "workloads/job.hpp"

namespace forerun {

/// What of a plan decides the kernels of a block.
struct ShapeKey {
  BlockKind kind = BlockKind::kDecoder;
  std::int64_t batch = 0, sequence = 0;
  int tp = 1, cp = 1;
  bool sequence_parallel = false, parallel_loss = false, fp8 = false, compiled = false,
       async_tp = false, accumulates = false, unfused = false, tied = false;
  CpKind cp_kind = CpKind::kAllGather;
  int ep = 1;  // of blocks with experts
  bool experts_cut = false;
  double imbalance = 1;
  Recompute recompute = Recompute::kNone;
  bool operator==(const ShapeKey&) const = default;
  [[nodiscard]] std::size_t hash() const {
    return hash_of(kind, batch, sequence, tp, cp, sequence_parallel, parallel_loss, fp8, compiled,
                   async_tp, accumulates, unfused, tied, cp_kind, recompute, ep, experts_cut);
  }
};

/// What decides how long those kernels take.
struct CostKey {
  ShapeKey shape;
  Span tp, cp, expert;
  AttentionKernel attention = AttentionKernel::kFlash2;
  Precision precision = Precision::kBf16;
  bool operator==(const CostKey&) const = default;
  [[nodiscard]] std::size_t hash() const {
    return hash_of(shape.hash(), tp.tier, cp.tier, expert.tier, attention, precision);
  }
};

/// What each group of a mesh crosses.
struct MeshSpans {
  Span tp, cp, shard, replicate, data;
  Span expert, expert_shard;  ///< ranks that hold all experts once; ranks that hold the same ones
  Tier pipeline = Tier::kGpu;
  double sync_seconds = 0;  ///< a reduction of one number over all ranks
};

struct MeshKey {
  Mesh mesh;
  int ep = 1;
  bool experts_cut = false, experts_replicated = false;
  bool operator==(const MeshKey&) const = default;
  [[nodiscard]] std::size_t hash() const;
};

/// What decides the stages of a pipeline.
struct LayoutKey {
  const CostedBlock* embedding = nullptr;
  const CostedBlock* layer = nullptr;
  const CostedBlock* head = nullptr;
  const CostedBlock* dense_layer = nullptr;  ///< beside layers with experts
  Span shard, replicate, data, expert_shard;
  int zero_stage = 3;
  OptimizerStates states;
  int pp = 1, virtual_stages = 1;
  bool accumulates = false, fp8 = false;
  Reshard reshard = Reshard::kDefault;
  StageLayers layers;  ///< the run's own split
  bool operator==(const LayoutKey&) const = default;
  [[nodiscard]] std::size_t hash() const;
};

/// What a pipeline rank holds from step to step.
struct RankHolds {
  Resident states{};           ///< parameters, moments, workspaces
  std::int64_t gradients = 0;  ///< live between steps, freed as a step begins
  int message_ends = 0;        ///< stage boundaries at which it receives or sends
  std::int64_t logits = 0;     ///< of one microbatch, where the stack keeps them
};

struct PipelineLayout {
  std::vector<StageChains> stages;
  std::vector<RankHolds> ranks;
  std::int64_t message_bytes = 0;
};

class Lowering {
 public:
  /// `scenario` and `profile` must outlive it.
  Lowering(const Scenario& scenario, const Profile& profile);

  /// Lowers a valid and supported plan. `out` is reused from plan to plan.
  void lower(const Plan& plan, Program& out);

  [[nodiscard]] const ProgramPool& pool() const { return pool_; }
  [[nodiscard]] const Costs& costs() const { return costs_; }
  /// The kernels of a block under a plan, for reports.
  const BlockKernels& kernels(BlockKind kind, const Plan& plan);
  [[nodiscard]] std::size_t shapes() const;

  /// Bytes that a pipeline rank holds between steps: states, gradients, persistent messages.
  [[nodiscard]] const std::vector<std::int64_t>& between_steps() const { return between_steps_; }

 private:
  struct StageKey {
    StageParts parts;
    bool receives = false, sends = false;
    bool operator==(const StageKey&) const = default;
    [[nodiscard]] std::size_t hash() const;
  };
  struct Stage {
    StageChains chains;
    Resident resident{};
    std::int64_t gradients = 0;
  };
  struct ScheduleKey {
    ScheduleKind kind;
    ScheduleRequest request;
    bool operator==(const ScheduleKey&) const = default;
    [[nodiscard]] std::size_t hash() const {
      return hash_of(kind, request.ranks, request.virtual_stages, request.microbatches);
    }
  };

  const BlockKernels& shape(const ShapeKey& key);
  const CostedBlock* costed(BlockKind kind, const Plan& plan, const MeshSpans& spans);
  const MeshSpans& spans(const Plan& plan);
  const PipelineLayout& layout(const Plan& plan, const MeshSpans& spans);
  PipelineLayout make_layout(const Plan& plan, const LayoutKey& key);
  void place_layers(StageParts& parts, const LayoutKey& key, int first_layer) const;
  const Stage& stage(const StageKey& key);
  void add_messages(const StageKey& key, StageChains& chains);
  const FoldedSchedule& schedule(const Plan& plan);

  const Scenario& scenario_;
  Costs costs_;
  ProgramPool pool_;
  std::unique_ptr<ShardingStrategy> sharded_, replicas_;
  std::array<Memo<ShapeKey, BlockKernels>, kBlockKinds> shapes_;
  std::array<Memo<CostKey, CostedBlock>, kBlockKinds> costed_;
  Memo<MeshKey, MeshSpans> spans_;
  Memo<StageKey, Stage> stages_;
  Memo<LayoutKey, PipelineLayout> layouts_;
  Memo<ScheduleKey, FoldedSchedule> schedules_;
  std::vector<std::int64_t> between_steps_;
};

}  // namespace forerun

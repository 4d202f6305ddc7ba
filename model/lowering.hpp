#pragma once

// From a plan to a program, memoised in three layers: the kernels of a block (shape), their durations
// on this hardware (cost), the chains of a stage (stage). Each layer is keyed by small integers, so
// that a sweep whose shape changes slowest lowers each shape once; the sharding strategy adds to the
// stage layer. All blocks lie in one pool.

#include <array>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

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
       async_tp = false;
  Recompute recompute = Recompute::kNone;
  bool operator==(const ShapeKey&) const = default;
};

struct CostKey {
  std::size_t shape = 0;
  Span tp, cp;
  AttentionKernel attention = AttentionKernel::kFlash2;
  bool fp8_step = false;
  bool operator==(const CostKey&) const = default;
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
  [[nodiscard]] std::size_t shapes() const { return shapes_.size(); }

  /// The bytes of one microbatch's activations between stages.
  std::int64_t message_bytes(const Plan& plan);
  /// Bytes that a pipeline rank holds between steps: states, gradients, persistent messages.
  [[nodiscard]] const std::vector<std::int64_t>& between_steps() const { return between_steps_; }

 private:
  struct StageEntry {
    StageParts parts;
    StageChains chains;
    Resident resident{};
    std::int64_t gradients = 0;
    const CostedBlock* message_of = nullptr;
    bool sends = false, receives = false;
  };

  std::size_t shape(const ShapeKey& key);
  const CostedBlock* costed(BlockKind kind, const Plan& plan);
  const StageEntry& stage(const Plan& plan, int index, int layers);
  void add_messages(const Plan& plan, int stage, StageEntry& entry);
  const FoldedSchedule& schedule(const Plan& plan);
  void split_layers(const Plan& plan);

  const Scenario& scenario_;
  const Profile& profile_;
  Costs costs_;
  ProgramPool pool_;
  std::unique_ptr<ShardingStrategy> sharding_;
  std::vector<ShapeKey> shape_keys_;
  std::vector<std::unique_ptr<BlockKernels>> shapes_;
  std::vector<CostKey> cost_keys_;
  std::vector<std::unique_ptr<CostedBlock>> costed_;
  std::list<StageEntry> stages_;
  std::list<std::pair<std::pair<ScheduleKind, ScheduleRequest>, FoldedSchedule>> schedules_;
  std::vector<int> layers_;
  std::vector<std::int64_t> between_steps_;
};

}  // namespace forerun

#pragma once

// Pipeline schedules: the order in which each rank of a pipeline runs its forwards and backwards.
// One generator a schedule, each in its own file, listed in register.cpp.
//
// A rank's order is a prefix, a cycle that repeats and a suffix; in repetition r of the cycle an
// action's microbatch is larger by r x stride. So a schedule of any number of microbatches takes a
// space that depends on the pipeline alone.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_text.hpp"
#include "workloads/plan.hpp"

namespace forerun {

/// First and last are told apart because parameters are gathered for the first microbatch of a
/// stage and gradients leave with its last one.
enum class ActionKind : std::uint8_t {
  kForward,
  kForwardFirst,
  kBackward,
  kBackwardFirst,
  kBackwardLast,
  kBackwardOnly,  ///< first and last at once
  kReduce,        ///< gradients of a stage, after its last backward
  kGradNorm,
  kOptimizer,
};
inline constexpr std::size_t kActionKinds = 9;
constexpr auto enum_texts(ActionKind) {
  return std::array<std::string_view, kActionKinds>{
      "forward",       "forward-first", "backward",  "backward-first", "backward-last",
      "backward-only", "reduce",        "grad-norm", "optimizer"};
}
FR_CHECK_ENUM(ActionKind, ActionKind::kOptimizer);

constexpr bool is_forward(ActionKind kind) {
  return kind == ActionKind::kForward || kind == ActionKind::kForwardFirst;
}
constexpr bool is_backward(ActionKind kind) {
  return kind >= ActionKind::kBackward && kind <= ActionKind::kBackwardOnly;
}

struct Action {
  ActionKind kind = ActionKind::kForward;
  std::int16_t chunk = 0;  ///< virtual stage of the rank
  std::int64_t microbatch = 0;
  bool operator==(const Action&) const = default;
};

/// Equal actions one after the other, of successive microbatches.
struct ActionRun {
  ActionKind kind = ActionKind::kForward;
  std::int16_t chunk = 0;
  std::int64_t count = 1;
};

/// Actions in order, and the same as runs for what does not depend on the microbatch.
struct ActionList {
  std::vector<Action> actions;
  std::vector<ActionRun> runs;

  ActionList() = default;
  explicit ActionList(std::vector<Action> order);
  [[nodiscard]] std::size_t size() const { return actions.size(); }
};

struct RankSchedule {
  ActionList prefix;
  ActionList cycle;
  ActionList suffix;  ///< microbatches as with no repetition of the cycle
};

/// The shape of a schedule; a program adds how often the cycle repeats.
struct PipelineSchedule {
  std::int64_t base_microbatches = 1;  ///< with no repetition
  std::int64_t stride = 1;             ///< microbatches that a repetition adds
  int virtual_stages = 1;              ///< of each rank
  std::vector<RankSchedule> ranks;

  /// The stage that a rank's chunk is: stages go round the ranks.
  [[nodiscard]] int stage_of(int rank, int chunk) const {
    return chunk * static_cast<int>(ranks.size()) + rank;
  }
  [[nodiscard]] int stages() const { return virtual_stages * static_cast<int>(ranks.size()); }

  [[nodiscard]] std::int64_t actions(int rank, std::int64_t repeats) const;
  /// The i-th action of a rank, i in [0, actions(rank, repeats)).
  [[nodiscard]] Action action(int rank, std::int64_t i, std::int64_t repeats) const;
};

struct ScheduleRequest {
  int ranks = 1;
  int virtual_stages = 1;
  std::int64_t microbatches = 1;
  std::int64_t round = 0;  ///< microbatches of a round, for schedules that have rounds

  bool operator==(const ScheduleRequest&) const = default;
};

/// The plain order of forwards and backwards of one rank, for one number of microbatches. A
/// generator writes only this; folding into prefix, cycle and suffix is common to all.
using RankOrder = std::vector<Action>;

class ScheduleGenerator {
 public:
  virtual ~ScheduleGenerator() = default;
  [[nodiscard]] virtual ScheduleKind kind() const = 0;
  /// Why such a pipeline cannot be run ("" if it can).
  [[nodiscard]] virtual std::string refusal(const ScheduleRequest& request) const = 0;
  [[nodiscard]] virtual RankOrder order(const ScheduleRequest& request, int rank) const = 0;
  /// Microbatches that one repetition of the steady cycle adds (the length of a round).
  [[nodiscard]] virtual std::int64_t stride(const ScheduleRequest& request) const = 0;
};

/// The generator of a schedule; null where there is none yet.
const ScheduleGenerator* find_schedule(ScheduleKind kind);

struct FoldedSchedule {
  PipelineSchedule schedule;
  std::int64_t repeats = 0;
};

/// The schedule with first and last microbatches marked and the reduce, norm and optimizer actions
/// at the end, folded as soon as there are microbatches enough. A schedule without one steady cycle
/// (gpipe) is left as it is.
FoldedSchedule make_schedule(const ScheduleGenerator& generator, const ScheduleRequest& request);

}  // namespace forerun

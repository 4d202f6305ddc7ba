#include "model/schedules/schedule.hpp"

#include <algorithm>

namespace forerun {
namespace {

ActionKind marked(const Action& action, std::int64_t microbatches) {
  const bool first = action.microbatch == 0, last = action.microbatch == microbatches - 1;
  if (action.kind == ActionKind::kForward) {
    return first ? ActionKind::kForwardFirst : ActionKind::kForward;
  }
  if (first && last) return ActionKind::kBackwardOnly;
  if (first) return ActionKind::kBackwardFirst;
  return last ? ActionKind::kBackwardLast : ActionKind::kBackward;
}

/// First and last marked; each stage's reduction after its last backward; norm and optimizer last.
RankOrder complete(RankOrder order, const ScheduleRequest& request) {
  RankOrder out;
  for (Action action : order) {
    action.kind = marked(action, request.microbatches);
    out.push_back(action);
    const bool last =
        action.kind == ActionKind::kBackwardLast || action.kind == ActionKind::kBackwardOnly;
    if (last) out.push_back({ActionKind::kReduce, action.chunk, action.microbatch});
  }
  const std::int64_t end = request.microbatches - 1;
  for (const ActionKind kind : {ActionKind::kGradNorm, ActionKind::kOptimizer}) {
    for (int chunk = 0; chunk < request.virtual_stages; ++chunk) {
      out.push_back({kind, static_cast<std::int16_t>(chunk), end});
    }
  }
  return out;
}

Action shifted(Action action, std::int64_t microbatches) {
  action.microbatch += microbatches;
  return action;
}

/// Cuts the cycle out of the order of one more repetition; empty cycle: there is none.
RankSchedule cut(const RankOrder& shorter, const RankOrder& longer, std::int64_t stride) {
  const std::size_t n = shorter.size(), length = longer.size() - n;
  std::size_t common = 0;  // common beginning
  while (common < n && shorter[common] == longer[common])
    ++common;
  std::size_t tail = 0;  // common end, the longer one's microbatches being larger by the stride
  while (tail < n && shifted(shorter[n - 1 - tail], stride) == longer[n + length - 1 - tail])
    ++tail;
  RankSchedule out;
  if (tail + common < n) return out;
  const auto at = static_cast<std::ptrdiff_t>(n - tail);
  const auto after_cycle = longer.begin() + at + static_cast<std::ptrdiff_t>(length);
  out.prefix = ActionList({shorter.begin(), shorter.begin() + at});
  out.cycle = ActionList({longer.begin() + at, after_cycle});
  out.suffix = ActionList({shorter.begin() + at, shorter.end()});
  return out;
}

RankOrder full_order(const ScheduleGenerator& generator, const ScheduleRequest& request, int rank) {
  return complete(generator.order(request, rank), request);
}

}  // namespace

ActionList::ActionList(std::vector<Action> order) : actions(std::move(order)) {
  for (const Action& a : actions) {
    if (!runs.empty() && runs.back().kind == a.kind && runs.back().chunk == a.chunk) {
      ++runs.back().count;
    } else {
      runs.push_back({a.kind, a.chunk, 1});
    }
  }
}

std::int64_t PipelineSchedule::actions(int rank, std::int64_t repeats) const {
  const RankSchedule& r = ranks[static_cast<std::size_t>(rank)];
  return static_cast<std::int64_t>(r.prefix.size() + r.suffix.size()) +
         repeats * static_cast<std::int64_t>(r.cycle.size());
}

Action PipelineSchedule::action(int rank, std::int64_t i, std::int64_t repeats) const {
  const RankSchedule& r = ranks[static_cast<std::size_t>(rank)];
  const auto prefix = static_cast<std::int64_t>(r.prefix.size());
  const auto cycle = static_cast<std::int64_t>(r.cycle.size());
  if (i < prefix) return r.prefix.actions[static_cast<std::size_t>(i)];
  if (i < prefix + repeats * cycle) {
    const std::int64_t in_cycle = i - prefix;
    return shifted(r.cycle.actions[static_cast<std::size_t>(in_cycle % cycle)],
                   in_cycle / cycle * stride);
  }
  const std::int64_t rest = i - prefix - repeats * cycle;
  return shifted(r.suffix.actions[static_cast<std::size_t>(rest)], repeats * stride);
}

namespace {

/// The schedule folded at `base` microbatches; no ranks where some rank has no cycle there.
PipelineSchedule folded_at(const ScheduleGenerator& generator, ScheduleRequest base) {
  PipelineSchedule out;
  out.base_microbatches = base.microbatches;
  out.stride = base.round;
  out.virtual_stages = base.virtual_stages;
  ScheduleRequest longer = base;
  longer.microbatches += base.round;
  for (int rank = 0; rank < base.ranks; ++rank) {
    out.ranks.push_back(
        cut(full_order(generator, base, rank), full_order(generator, longer, rank), base.round));
    if (!out.ranks.back().cycle.actions.empty()) continue;
    out.ranks.clear();
    return out;
  }
  return out;
}

PipelineSchedule unfolded(const ScheduleGenerator& generator, const ScheduleRequest& request) {
  PipelineSchedule out;
  out.base_microbatches = request.microbatches;
  out.virtual_stages = request.virtual_stages;
  for (int rank = 0; rank < request.ranks; ++rank) {
    out.ranks.push_back({ActionList(full_order(generator, request, rank)), {}, {}});
  }
  return out;
}

}  // namespace

FoldedSchedule make_schedule(const ScheduleGenerator& generator, const ScheduleRequest& request) {
  ScheduleRequest base = request;
  base.round = generator.stride(request);
  const std::int64_t longest = 4 * (request.ranks + base.round) * request.virtual_stages;
  if (base.round > 0) {
    base.microbatches = base.round + request.microbatches % base.round;
    for (; base.microbatches < std::min(request.microbatches, longest);
         base.microbatches += base.round) {
      PipelineSchedule folded = folded_at(generator, base);
      if (folded.ranks.empty()) continue;
      return {std::move(folded), (request.microbatches - base.microbatches) / base.round};
    }
  }
  base.microbatches = request.microbatches;
  return {unfolded(generator, base), 0};
}

}  // namespace forerun

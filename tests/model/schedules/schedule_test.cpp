// Folding: prefix, cycle and suffix say the same as the order written out.

#include "model/schedules/schedule.hpp"

#include <doctest/doctest.h>

#include "tests/model/schedules/reference.hpp"

using namespace forerun;

namespace {

/// The flat order of a rank with what make_schedule adds: first and last microbatches told apart, a
/// reduction behind each chunk's last backward, then norm and optimizer of each chunk.
std::vector<Action> written_out(const std::vector<Action>& order, int chunks, std::int64_t m) {
  std::vector<Action> out;
  for (Action a : order) {
    const bool first = a.microbatch == 0, last = a.microbatch == m - 1;
    if (a.kind == ActionKind::kForward) {
      if (first) a.kind = ActionKind::kForwardFirst;
      out.push_back(a);
      continue;
    }
    a.kind = first && last ? ActionKind::kBackwardOnly
             : first       ? ActionKind::kBackwardFirst
             : last        ? ActionKind::kBackwardLast
                           : ActionKind::kBackward;
    out.push_back(a);
    if (last) out.push_back({ActionKind::kReduce, a.chunk, a.microbatch});
  }
  for (const ActionKind kind : {ActionKind::kGradNorm, ActionKind::kOptimizer}) {
    for (int c = 0; c < chunks; ++c)
      out.push_back({kind, static_cast<std::int16_t>(c), m - 1});
  }
  return out;
}

std::vector<Action> unrolled(const FoldedSchedule& folded, int rank) {
  std::vector<Action> out;
  const std::int64_t n = folded.schedule.actions(rank, folded.repeats);
  for (std::int64_t i = 0; i < n; ++i) {
    out.push_back(folded.schedule.action(rank, i, folded.repeats));
  }
  return out;
}

bool runs_match(const ActionList& list) {
  std::size_t i = 0;
  for (const ActionRun& run : list.runs) {
    for (std::int64_t n = 0; n < run.count; ++n, ++i) {
      if (i >= list.actions.size() || list.actions[i].kind != run.kind ||
          list.actions[i].chunk != run.chunk) {
        return false;
      }
    }
  }
  return i == list.actions.size();
}

/// Checks one schedule in every rank against its reference order.
template <class Reference>
void check(ScheduleKind kind, const ScheduleRequest& request, Reference reference) {
  CAPTURE(to_text(kind));
  CAPTURE(request.ranks);
  CAPTURE(request.virtual_stages);
  CAPTURE(request.microbatches);
  const ScheduleGenerator* generator = find_schedule(kind);
  REQUIRE(generator != nullptr);
  const FoldedSchedule folded = make_schedule(*generator, request);
  CHECK(folded.schedule.base_microbatches + folded.repeats * folded.schedule.stride ==
        request.microbatches);
  CHECK(folded.schedule.stages() == request.ranks * request.virtual_stages);
  REQUIRE(folded.schedule.ranks.size() == static_cast<std::size_t>(request.ranks));
  for (int rank = 0; rank < request.ranks; ++rank) {
    CHECK(unrolled(folded, rank) ==
          written_out(reference(rank), request.virtual_stages, request.microbatches));
    const RankSchedule& r = folded.schedule.ranks[static_cast<std::size_t>(rank)];
    CHECK((runs_match(r.prefix) && runs_match(r.cycle) && runs_match(r.suffix)));
  }
}

}  // namespace

TEST_CASE("folded schedules say what the orders written out say") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const std::int64_t m : {1, 2, 3, 4, 7, 8, 16, 33, 64}) {
      check(ScheduleKind::kGpipe, test::request(ranks, 1, m), [&](int) { return test::gpipe(m); });
      check(ScheduleKind::k1F1B, test::request(ranks, 1, m),
            [&](int rank) { return test::one_f_one_b(ranks, rank, m); });
      for (const int chunks : {2, 3}) {
        const ScheduleRequest request = test::request(ranks, chunks, m);
        const std::int64_t round = m / std::max<std::int64_t>(1, m / ranks);
        if (!find_schedule(ScheduleKind::kInterleaved1F1B)->refusal(request).empty()) continue;
        check(ScheduleKind::kInterleaved1F1B, request,
              [&](int rank) { return test::interleaved(ranks, rank, chunks, m, round); });
      }
    }
  }
}

TEST_CASE("a folded schedule takes a space that depends on the pipeline alone") {
  const auto actions = [](ScheduleKind kind, int chunks, std::int64_t m) {
    const FoldedSchedule folded = make_schedule(*find_schedule(kind), test::request(4, chunks, m));
    std::size_t n = 0;
    for (const RankSchedule& r : folded.schedule.ranks) {
      n += r.prefix.size() + r.cycle.size() + r.suffix.size();
    }
    return n;
  };
  CHECK(actions(ScheduleKind::k1F1B, 1, 64) == actions(ScheduleKind::k1F1B, 1, 65536));
  CHECK(actions(ScheduleKind::kInterleaved1F1B, 2, 64) ==
        actions(ScheduleKind::kInterleaved1F1B, 2, 65536));
}

TEST_CASE("each repetition of 1f1b's cycle is one forward and one backward") {
  const FoldedSchedule folded =
      make_schedule(*find_schedule(ScheduleKind::k1F1B), test::request(4, 1, 64));
  CHECK(folded.schedule.stride == 1);
  CHECK(folded.repeats > 64 - 4 * 4);
  for (const RankSchedule& r : folded.schedule.ranks)
    CHECK(r.cycle.size() == 2);
}

TEST_CASE("the forwards of gpipe are one run each way") {
  const FoldedSchedule folded =
      make_schedule(*find_schedule(ScheduleKind::kGpipe), test::request(2, 1, 10));
  CHECK(folded.repeats == 0);
  // Forward first and nine more; backward first, eight, and the last; reduce, norm, optimizer.
  CHECK(folded.schedule.ranks[0].prefix.runs.size() == 2 + 3 + 3);
}

TEST_CASE("stages go round the ranks") {
  const FoldedSchedule folded =
      make_schedule(*find_schedule(ScheduleKind::kInterleaved1F1B), test::request(4, 2, 8));
  CHECK(folded.schedule.stage_of(1, 0) == 1);
  CHECK(folded.schedule.stage_of(1, 1) == 5);
}

TEST_CASE("schedules that nothing generates are not found") {
  CHECK(find_schedule(ScheduleKind::kZbv) == nullptr);
  for (const ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::k1F1B, ScheduleKind::kInterleaved1F1B}) {
    CHECK(find_schedule(kind)->kind() == kind);
  }
}

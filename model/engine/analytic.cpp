#include "model/engine/analytic.hpp"

#include "base/memo.hpp"
#include "model/engine/pipeline_run.hpp"

namespace forerun {
namespace {

/// Repetitions of a schedule's cycle that are played at most before the rest is told from a period;
/// nearly every pipeline shows one after three or four.
constexpr std::int64_t kMostCycles = 24;

struct TapeKey {
  const PipelineSchedule* schedule = nullptr;
  std::int64_t repeats = 0;
  bool operator==(const TapeKey&) const = default;
  [[nodiscard]] std::size_t hash() const {
    return hash_of(reinterpret_cast<std::uintptr_t>(schedule), repeats);
  }
};

std::int64_t cycles_to_play(std::int64_t repeats) {
  if (repeats <= kMostCycles) return repeats;
  return kMostCycles + (repeats - kMostCycles) % kLongestCyclePeriod;
}

}  // namespace

struct AnalyticEngine::Parts {
  Parts(const ProgramPool& pool, const RateTable& rates)
      : table(pool, rates),
        runner(pool, rates),
        fast(FastLane(table)),
        followed(FollowedLane(pool, runner)) {}

  template <class Lane>
  void run(const Program& program, PipelineRun<Lane>& run, Timeline& out) {
    if (run.play(program, tape(*program.schedule, cycles_to_play(program.repeats)), out)) return;
    run.play(program, tape(*program.schedule, program.repeats), out);
  }

  const Tape& tape(const PipelineSchedule& schedule, std::int64_t repeats) {
    return tapes.find_or_make({&schedule, repeats}, [&] { return make_tape(schedule, repeats); });
  }

  Memo<TapeKey, Tape> tapes;
  ChainTable table;
  ChainRunner runner;
  PipelineRun<FastLane> fast;
  PipelineRun<FollowedLane> followed;
};

AnalyticEngine::AnalyticEngine(const ProgramPool& pool, const RateTable& rates)
    : parts_(std::make_unique<Parts>(pool, rates)) {}
AnalyticEngine::~AnalyticEngine() = default;

void AnalyticEngine::run(const Program& program, Timeline& out) {
  parts_->run(program, parts_->fast, out);
}

void AnalyticEngine::explain(const Program& program, Timeline& out) {
  parts_->run(program, parts_->followed, out);
  out.breakdown = parts_->followed.lane(out.last_rank).breakdown();
}

}  // namespace forerun

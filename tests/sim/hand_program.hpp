#pragma once

// Programs put together by hand, one rank a stage.

#include <memory>
#include <vector>

#include "model/program.hpp"

namespace forerun::test {

inline Operation kernel(double seconds) {
  Operation op;
  op.name = "kernel";
  op.stream = static_cast<std::int8_t>(slot_of(Stream::kCompute));
  op.family = KernelFamily::kGemm;
  op.category = Category::kGemm;
  op.seconds = seconds;
  return op;
}

/// A program that owns its pool and schedule.
struct HandProgram {
  explicit HandProgram(std::size_t ranks)
      : pool(std::make_unique<ProgramPool>()), schedule(std::make_unique<PipelineSchedule>()) {
    schedule->ranks.resize(ranks);
    program.pool = pool.get();
    program.schedule = schedule.get();
    program.ranks = static_cast<int>(ranks);
    program.stages.resize(ranks);
    program.resident.resize(ranks);
  }

  /// What an action of a stage does: `count` times one block.
  void does(std::size_t stage, ActionKind kind, const BlockDraft& draft, std::int64_t count = 1) {
    program.stages[stage].chain[static_cast<std::size_t>(kind)] =
        pool->add(Chain(ChainDraft{{pool->add(draft), count}}));
  }
  void order(std::size_t rank, std::vector<Action> actions) {
    schedule->ranks[rank].prefix = ActionList(std::move(actions));
  }

  std::unique_ptr<ProgramPool> pool;
  std::unique_ptr<PipelineSchedule> schedule;
  Program program;
};

/// Two stages, one microbatch: forwards of 2 and 3 s, backwards of 5 and 4 s, messages of 1 s, a
/// reduction of 0.5 s, optimizers of 1 and 2 s.
inline HandProgram two_stages() {
  HandProgram p(2);
  const auto lasts = [](double seconds) {
    BlockDraft draft;
    draft.name = "block";
    draft.operations = {kernel(seconds)};
    return draft;
  };
  for (std::size_t s = 0; s < 2; ++s) {
    p.does(s, ActionKind::kForwardFirst, lasts(s == 0 ? 2 : 3));
    p.does(s, ActionKind::kBackwardOnly, lasts(s == 0 ? 5 : 4));
    p.does(s, ActionKind::kOptimizer, lasts(s == 0 ? 1 : 2));
    p.order(s, {{ActionKind::kForwardFirst, 0, 0},
                {ActionKind::kBackwardOnly, 0, 0},
                {ActionKind::kReduce, 0, 0},
                {ActionKind::kOptimizer, 0, 0}});
  }
  p.program.message_seconds = 1;
  p.program.sync_seconds = 0.5;
  return p;
}

}  // namespace forerun::test

#include "model/engine/memory.hpp"

#include <fmt/format.h>

#include <numeric>

namespace forerun {

std::int64_t total(const Resident& resident) {
  return std::accumulate(resident.begin(), resident.end(), std::int64_t{0});
}

const MemoryFold& MemoryEngine::make_fold(ChainId id) {
  const auto at = static_cast<std::size_t>(id.index());
  if (at >= by_chain_.size()) by_chain_.resize(2 * at + 1);
  MemoryFold sum;
  for (const ChainLink& link : pool_[id]) {
    const MemoryFold& block = pool_[link.block].memory;
    sum = sum + (link.count == 1 ? block : block.repeated(link.count));
  }
  by_chain_[at] = &folds_.emplace_back(sum);
  return folds_.back();
}

MemoryFold MemoryEngine::fold(const Program& program, int rank) {
  const RankSchedule& schedule = program.schedule->ranks[static_cast<std::size_t>(rank)];
  const auto sum = [&](const ActionList& list) {
    MemoryFold fold;
    for (const ActionRun& run : list.runs) {
      const int stage = program.stage_of(rank, run.chunk);
      const ChainId id =
          program.stages[static_cast<std::size_t>(stage)].chain[static_cast<std::size_t>(run.kind)];
      if (!id.valid()) continue;
      fold = fold + (run.count == 1 ? chain_fold(id) : chain_fold(id).repeated(run.count));
    }
    return fold;
  };
  return sum(schedule.prefix) + sum(schedule.cycle).repeated(program.repeats) +
         sum(schedule.suffix);
}

namespace {

/// Walks the events of a rank in program order and stops at the highest level.
class PeakWalk {
 public:
  PeakWalk(const Program& program, int rank, std::int64_t peak)
      : program_(program), rank_(rank), peak_(peak) {
    live_ = program.resident[static_cast<std::size_t>(rank)];
  }

  MemoryEngine::Peak run() {
    // The peak lies where the schedule first reaches it: skipping repetitions of a cycle that
    // changes nothing would find it too, but the walk is short enough where they do.
    const std::int64_t actions = program_.schedule->actions(rank_, program_.repeats);
    for (std::int64_t i = 0; i < actions && !found_; ++i) {
      walk(program_.schedule->action(rank_, i, program_.repeats));
    }
    MemoryEngine::Peak out;
    out.live = live_;
    out.bytes = total(live_);
    out.where = where_;
    return out;
  }

 private:
  void walk(const Action& action) {
    const int stage = program_.stage_of(rank_, action.chunk);
    const ChainId id = program_.stages[static_cast<std::size_t>(stage)]
                           .chain[static_cast<std::size_t>(action.kind)];
    if (!id.valid()) return;
    for (const ChainLink& link : (*program_.pool)[id]) {
      const Block& block = (*program_.pool)[link.block];
      for (std::int64_t turn = 0; turn < link.count && !found_; ++turn) {
        apply(block, [&] {
          where_ =
              fmt::format("stage {}, {} of microbatch {}, {} {} of {}", stage, to_text(action.kind),
                          action.microbatch, block.name, turn + 1, link.count);
        });
      }
    }
  }

  template <class Note>
  void apply(const Block& block, Note note) {
    for (const MemoryEvent& event : block.events) {
      live_[static_cast<std::size_t>(event.component)] += event.bytes;
      level_ += event.bytes;
      if (level_ != peak_) continue;
      found_ = true;
      note();
      return;
    }
  }

  const Program& program_;
  int rank_;
  std::int64_t peak_;
  std::int64_t level_ = 0;
  Resident live_{};
  bool found_ = false;
  std::string where_ = "between steps";
};

}  // namespace

MemoryEngine::Peak MemoryEngine::peak(const Program& program, int rank) {
  const std::int64_t highest = fold(program, rank).all.peak;
  if (highest == 0) {
    Peak out;
    out.live = program.resident[static_cast<std::size_t>(rank)];
    out.bytes = total(out.live);
    out.where = "between steps";
    return out;
  }
  return PeakWalk(program, rank, highest).run();
}

}  // namespace forerun

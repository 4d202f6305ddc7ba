#include "model/engine/tape.hpp"

#include <algorithm>
#include <map>

#include "base/contract.hpp"

namespace forerun {
namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Runs a schedule with messages that take no time and writes down what is run.
class Recorder {
 public:
  Recorder(const PipelineSchedule& schedule, std::int64_t repeats)
      : schedule_(schedule), ranks_(schedule.ranks.size()) {
    stages_ = schedule.stages();
    tape_.repeats = repeats;
    tape_.mailboxes = 2 * stages_;
    waiting_.assign(at(tape_.mailboxes), 0);
  }

  Tape run() {
    for (std::int64_t target = 1; target <= tape_.repeats; ++target) {
      reach_cycle(target);
      tape_.marks.push_back({tape_.steps.size(), pattern()});
    }
    limit_ = tape_.repeats;
    run_until([](const Rank& r) { return r.at_barrier || r.done; });
    tape_.barrier = tape_.steps.size();
    released_ = true;
    run_until([](const Rank& r) { return r.done; });
    while (tape_.capacity < most_waiting_)
      tape_.capacity *= 2;
    return std::move(tape_);
  }

 private:
  struct Rank {
    std::size_t position = 0;  // in the phase
    int phase = 0;             // 0 prefix, 1 cycle, 2 suffix
    std::int64_t cycles = 0;
    bool at_barrier = false;
    bool done = false;
  };

  [[nodiscard]] const std::vector<Action>& actions(std::size_t rank, int phase) const {
    const RankSchedule& s = schedule_.ranks[rank];
    return (phase == 0 ? s.prefix : phase == 1 ? s.cycle : s.suffix).actions;
  }

  /// Runs the next action of a rank; false where it has to wait, or may not begin another cycle.
  bool step(std::size_t r) {
    Rank& rank = ranks_[r];
    if (!enter_phase(r)) return false;
    const Action& action = actions(r, rank.phase)[rank.position];
    if (action.kind == ActionKind::kOptimizer && !released_) {
      rank.at_barrier = true;
      return false;
    }
    TapeStep out;
    out.rank = static_cast<std::int16_t>(r);
    out.stage = static_cast<std::int16_t>(schedule_.stage_of(static_cast<int>(r), action.chunk));
    out.kind = action.kind;
    address(out);
    if (out.receives >= 0) {
      if (waiting_[at(out.receives)] == 0) return false;
      --waiting_[at(out.receives)];
    }
    if (out.sends >= 0) most_waiting_ = std::max(most_waiting_, ++waiting_[at(out.sends)]);
    tape_.steps.push_back(out);
    ++rank.position;
    if (rank.phase == 1 && rank.position == actions(r, 1).size()) {
      rank.position = 0;
      ++rank.cycles;
    }
    return true;
  }

  /// Mailboxes: one for activations into each stage, then one for gradients into each stage.
  void address(TapeStep& step) const {
    const bool first = step.stage == 0, last = step.stage + 1 == stages_;
    if (is_forward(step.kind)) {
      if (!first) step.receives = step.stage;
      if (!last) step.sends = static_cast<std::int16_t>(step.stage + 1);
    } else if (is_backward(step.kind)) {
      if (!last) step.receives = static_cast<std::int16_t>(stages_ + step.stage);
      if (!first) step.sends = static_cast<std::int16_t>(stages_ + step.stage - 1);
    }
  }

  /// Moves a rank to its next phase where the present one is used up.
  bool enter_phase(std::size_t r) {
    Rank& rank = ranks_[r];
    if (rank.phase == 0 && rank.position == actions(r, 0).size()) {
      rank.phase = 1;
      rank.position = 0;
    }
    if (rank.phase == 1 && rank.position == 0) {
      if (rank.cycles == tape_.repeats) {
        rank.phase = 2;
      } else if (rank.cycles >= limit_) {
        return false;
      }
    }
    if (rank.phase == 2 && rank.position == actions(r, 2).size()) rank.done = true;
    return !rank.done;
  }

  /// One turn over the ranks, each going as far as it can; tells whether any moved and all are
  /// there.
  template <class Reached>
  std::pair<bool, bool> turn(Reached reached) {
    bool moved = false, all = true;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      while (!reached(ranks_[r]) && step(r))
        moved = true;
      all &= reached(ranks_[r]);
    }
    return {moved, all};
  }

  template <class Reached>
  void run_until(Reached reached) {
    while (true) {
      const auto [moved, all] = turn(reached);
      if (all) return;
      FR_ASSERT(moved);
    }
  }

  /// Every rank completes `target` cycles; where ranks need it, others run further ahead.
  void reach_cycle(std::int64_t target) {
    limit_ = std::max(limit_, target);
    const auto reached = [&](const Rank& r) { return r.cycles >= target || r.phase == 2; };
    while (true) {
      auto [moved, all] = turn(reached);
      if (all) return;
      if (moved) continue;
      ++limit_;
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        moved |= step(r);
      FR_ASSERT(moved);
    }
  }

  /// A number for where each rank stands beside the slowest one and what is under way.
  int pattern() {
    std::int64_t least = ranks_[0].cycles;
    for (const Rank& r : ranks_)
      least = std::min(least, r.cycles);
    std::vector<std::int64_t> place(waiting_.begin(), waiting_.end());
    for (const Rank& r : ranks_) {
      place.push_back(r.phase);
      place.push_back(r.phase == 2 ? 0 : r.cycles - least);
      place.push_back(static_cast<std::int64_t>(r.position));
    }
    return patterns_.emplace(std::move(place), static_cast<int>(patterns_.size())).first->second;
  }

  const PipelineSchedule& schedule_;
  std::vector<Rank> ranks_;
  Tape tape_;
  int stages_ = 0;
  std::int64_t limit_ = 0;  // no rank begins a cycle beyond
  bool released_ = false;
  std::vector<int> waiting_;  // by mailbox
  int most_waiting_ = 1;
  std::map<std::vector<std::int64_t>, int> patterns_;
};

}  // namespace

Tape make_tape(const PipelineSchedule& schedule, std::int64_t repeats) {
  return Recorder(schedule, repeats).run();
}

}  // namespace forerun

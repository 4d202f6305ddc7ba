#pragma once

// A tape played on one lane a rank: messages, the folding of cycles, the barrier before the
// optimizer.

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/contract.hpp"
#include "model/engine/analytic.hpp"
#include "model/engine/lane.hpp"
#include "model/engine/period.hpp"
#include "model/engine/tape.hpp"

namespace forerun {

/// Periods of a schedule's cycle that are looked for: 1 and 2 repetitions.
inline constexpr int kLongestCyclePeriod = 2;

template <class Lane>
class PipelineRun {
 public:
  explicit PipelineRun(Lane empty) : empty_(std::move(empty)) {}

  /// Plays a tape that has fewer repetitions than the program. False where no period shows, so that
  /// the missing ones cannot be told.
  bool play(const Program& program, const Tape& tape, Timeline& out) {
    begin(program, tape, out);
    if (!cycles(program.repeats - tape.repeats)) return false;
    run_to(tape.barrier);
    barrier();
    run_to(tape.steps.size());
    finish();
    return true;
  }

  [[nodiscard]] const Lane& lane(int rank) const { return lanes_[static_cast<std::size_t>(rank)]; }

 private:
  static constexpr bool kFollows = !std::is_empty_v<typename Lane::Snapshot>;

  struct Mailbox {
    std::uint32_t sent = 0, received = 0;
  };

  void begin(const Program& program, const Tape& tape, Timeline& out) {
    program_ = &program;
    tape_ = &tape;
    out_ = &out;
    next_ = 0;
    const auto ranks = static_cast<std::size_t>(program.ranks);
    while (lanes_.size() < ranks)
      lanes_.push_back(empty_);
    for (std::size_t r = 0; r < ranks; ++r)
      lanes_[r].reset();
    out.stage_end.assign(program.stages.size(), 0.0);
    out.rank_end.assign(ranks, 0.0);
    mailboxes_.assign(static_cast<std::size_t>(tape.mailboxes), {});
    arrivals_.resize(static_cast<std::size_t>(tape.mailboxes) *
                     static_cast<std::size_t>(tape.capacity));
  }

  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(program_->ranks); }
  [[nodiscard]] double& letter(std::size_t box, std::uint32_t number) {
    const auto capacity = static_cast<std::uint32_t>(tape_->capacity);
    return arrivals_[box * capacity + (number & (capacity - 1))];
  }

  void run_to(std::size_t end) {
    for (; next_ < end; ++next_)
      step(tape_->steps[next_]);
  }

  void step(const TapeStep& step) {
    Lane& lane = lanes_[static_cast<std::size_t>(step.rank)];
    if (step.receives >= 0) {
      const auto box = static_cast<std::size_t>(step.receives);
      lane.receive({letter(box, mailboxes_[box].received++), program_->message_seconds});
    }
    const auto stage = static_cast<std::size_t>(step.stage);
    const ChainId chain = program_->stages[stage].chain[static_cast<std::size_t>(step.kind)];
    if (chain.valid()) lane.run(chain);
    if (step.sends >= 0) {
      const auto box = static_cast<std::size_t>(step.sends);
      letter(box, mailboxes_[box].sent++) =
          lane.send(program_->message_seconds, program_->blocking_sends);
    }
    if (step.kind == ActionKind::kReduce) out_->stage_end[stage] = lane.device_end();
  }

  // ---- cycles --------------------------------------------------------------------------------

  /// Plays repetitions until the state repeats, then leaps over the rest: `missing` ones that the
  /// tape does not have and as many of the tape's own as make whole periods.
  bool cycles(std::int64_t missing) {
    period_.clear();
    snapshots_.clear();
    for (std::size_t m = 0; m < tape_->marks.size(); ++m) {
      run_to(tape_->marks[m].step);
      if (m > 0 && tape_->marks[m].pattern != tape_->marks[m - 1].pattern) period_.clear();
      note();
      const auto may_lag = [&](int i, std::span<const double> shift) {
        const auto at = static_cast<std::size_t>(i);
        return is_host_[at] || shift[at] == 0;  // a host waits for nothing, a stream stands idle
      };
      const int period = period_.find(leads_, may_lag, kLongestCyclePeriod);
      if (period == 0 || missing % period != 0) continue;
      leap(m, period, missing);
      return true;
    }
    return missing == 0;
  }

  /// Visits every time with its slot, kNoSlot for collectives and messages under way.
  template <class Visit>
  void each_time(Visit visit) {
    for (std::size_t r = 0; r < ranks(); ++r)
      lanes_[r].each_time(visit);
    for (std::size_t box = 0; box < mailboxes_.size(); ++box) {
      for (std::uint32_t n = mailboxes_[box].received; n != mailboxes_[box].sent; ++n) {
        visit(letter(box, n), kNoSlot);
      }
    }
  }

  void note() {
    times_.clear();
    leads_.clear();
    is_host_.clear();
    each_time([&](double time, int slot) {
      const bool leads = slot == slot_of(Stream::kCompute) || slot == kNoSlot;
      if (leads) leads_.push_back(static_cast<int>(times_.size()));
      is_host_.push_back(slot == slot_of(Stream::kHost));
      times_.push_back(time);
    });
    period_.push(times_);
    if constexpr (kFollows) {
      snapshots_.emplace_back();
      for (std::size_t r = 0; r < ranks(); ++r)
        snapshots_.back().push_back(lanes_[r].snapshot());
    }
  }

  void leap(std::size_t mark, int period, std::int64_t missing) {
    std::size_t to = mark;
    const auto step = static_cast<std::size_t>(period);
    while (to + step < tape_->marks.size() &&
           tape_->marks[to + step].pattern == tape_->marks[mark].pattern) {
      to += step;
    }
    const std::int64_t repetitions = missing + static_cast<std::int64_t>(to - mark);
    next_ = tape_->marks[to].step;
    if (repetitions == 0) return;
    const auto periods = static_cast<double>(repetitions / period);
    std::size_t i = 0;
    each_time([&](double& time, int /*slot*/) { time += periods * period_.shift()[i++]; });
    if constexpr (kFollows) {
      const auto& before = snapshots_[snapshots_.size() - 1 - step];
      for (std::size_t r = 0; r < ranks(); ++r)
        lanes_[r].repeat(before[r], periods);
    }
  }

  // ---- the end -------------------------------------------------------------------------------

  /// The reduction over all ranks between the gradient norm and the optimizer.
  void barrier() {
    double latest = 0;
    for (std::size_t r = 0; r < ranks(); ++r) {
      latest = std::max(latest, lanes_[r].reach_barrier());
    }
    for (std::size_t r = 0; r < ranks(); ++r) {
      lanes_[r].pass_barrier(latest, latest + program_->sync_seconds);
    }
  }

  void finish() {
    out_->step_seconds = 0;
    for (std::size_t r = 0; r < ranks(); ++r) {
      out_->rank_end[r] = lanes_[r].end();
      if (out_->rank_end[r] <= out_->step_seconds) continue;
      out_->step_seconds = out_->rank_end[r];
      out_->last_rank = static_cast<int>(r);
    }
  }

  Lane empty_;
  std::vector<Lane> lanes_;
  const Program* program_ = nullptr;
  const Tape* tape_ = nullptr;
  Timeline* out_ = nullptr;
  std::size_t next_ = 0;  // step of the tape
  std::vector<Mailbox> mailboxes_;
  std::vector<double> arrivals_;  // mailbox by mailbox
  PeriodFinder period_;
  std::vector<double> times_;
  std::vector<int> leads_;     // of times_: compute streams, collectives and messages under way
  std::vector<bool> is_host_;  // for each of times_
  std::vector<std::vector<typename Lane::Snapshot>> snapshots_;
};

}  // namespace forerun

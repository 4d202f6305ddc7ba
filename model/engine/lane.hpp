#pragma once

// One rank of a pipeline as the analytic engine carries it from action to action. Two kinds: one
// that only tells when things end, and one that also follows where the time goes.

#include <algorithm>
#include <vector>

#include "model/engine/chain_table.hpp"

namespace forerun {

/// What the engine itself puts on a rank's streams, common to both kinds of lane.
struct Arrival {
  double time = 0;
  double on_wire = 0;  ///< of which at most this was the message's own time
};

template <class Visit>
void visit_times(RankState& state, Visit visit) {
  for (int slot = 0; slot < kSlots; ++slot)
    visit(state.at[static_cast<std::size_t>(slot)], slot);
  for (RunningCollective& c : state.running) {
    visit(c.begin, static_cast<int>(kNoSlot));
    visit(c.end, static_cast<int>(kNoSlot));
  }
}

/// Times only.
class FastLane {
 public:
  struct Snapshot {};
  explicit FastLane(ChainTable& table) : table_(&table) {}

  void reset();
  void run(ChainId id) {
    ChainTable::Entry& entry = (*table_)[id];
    const LeanMap& lean = entry.lean;
    const bool whole = !lean.known || !state_.running.empty() || (lean.reads & ~behind_) != 0;
    if (whole) return run_whole(id, entry);
    if (pending_ != nullptr && (pending_->lean.touches & ~lean.touches) != 0) settle();
    double& host = state_[Stream::kHost];
    double& compute = state_[Stream::kCompute];
    pending_ = &entry;
    pending_host_ = host;
    pending_compute_ = compute;
    compute = std::max(compute + lean.after_compute, host + lean.after_host);
    host += lean.launching;
  }
  /// The compute stream waits for a message (and the host that launches the wait).
  void receive(const Arrival& arrival) {
    double& compute = state_[Stream::kCompute];
    compute = std::max({compute, state_[Stream::kHost], arrival.time});
  }
  /// A message leaves; returns when it arrives.
  double send(double seconds, bool blocking) {
    double& pipe = state_[Stream::kPipe];
    double& compute = state_[Stream::kCompute];
    pipe = std::max({pipe, compute, state_[Stream::kHost]}) + seconds;
    if (blocking) compute = pipe;
    behind_ &= ~bit(slot_of(Stream::kPipe));  // no chain reads it
    return pipe;
  }
  /// The host launches the reduction over all ranks; returns when the rank has reached it.
  double reach_barrier();
  void pass_barrier(double latest, double after);

  [[nodiscard]] double compute_end() const { return state_[Stream::kCompute]; }
  /// The end of everything that runs on the GPU, and of the host too.
  double device_end();
  double end() { return std::max(device_end(), state_[Stream::kHost]); }

  /// Visits every time of the state with its slot, kNoSlot for collectives under way.
  template <class Visit>
  void each_time(Visit visit) {
    settle();
    visit_times(state_, visit);
  }
  [[nodiscard]] Snapshot snapshot() const { return {}; }
  void repeat(const Snapshot& /*before*/, double /*periods*/) {}

 private:
  void run_whole(ChainId id, ChainTable::Entry& entry);
  void settle();

  ChainTable* table_;
  RankState state_;
  /// A lean chain that has moved the host and the compute stream; other slots follow when needed.
  const ChainTable::Entry* pending_ = nullptr;
  double pending_host_ = 0, pending_compute_ = 0;
  SlotMask behind_ = 0;  // slots known not to be ahead of the compute stream
};

/// Times, and for every slot the breakdown of the critical path that leads to it.
class FollowedLane {
 public:
  using Snapshot = SlotBreakdowns;
  FollowedLane(const ProgramPool& pool, ChainRunner& runner) : pool_(&pool), runner_(&runner) {}

  void reset();
  void run(ChainId id) { runner_->run((*pool_)[id], state_, spent_); }
  void receive(const Arrival& arrival);
  double send(double seconds, bool blocking);
  double reach_barrier();
  void pass_barrier(double latest, double after);

  [[nodiscard]] double compute_end() const { return state_[Stream::kCompute]; }
  double device_end() const;
  double end() const { return std::max(device_end(), state_[Stream::kHost]); }
  /// Of the stream that ends last.
  [[nodiscard]] const Breakdown& breakdown() const;

  template <class Visit>
  void each_time(Visit visit) {
    visit_times(state_, visit);
  }
  [[nodiscard]] const Snapshot& snapshot() const { return spent_; }
  void repeat(const Snapshot& before, double periods);

 private:
  [[nodiscard]] Breakdown& spent(Stream stream) {
    return spent_[static_cast<std::size_t>(slot_of(stream))];
  }
  void wait_for_host();

  const ProgramPool* pool_;
  ChainRunner* runner_;
  RankState state_;
  SlotBreakdowns spent_{};
};

}  // namespace forerun

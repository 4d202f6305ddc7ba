#include "model/engine/lane.hpp"

namespace forerun {
namespace {

double last_of_device(const RankState& state) {
  double end = 0;
  for (int slot = 0; slot < kStreams; ++slot) {
    if (slot != slot_of(Stream::kHost))
      end = std::max(end, state.at[static_cast<std::size_t>(slot)]);
  }
  return end;
}

SlotMask not_ahead(const RankState& state) {
  SlotMask mask = 0;
  for (int slot = 0; slot < kSlots; ++slot) {
    if (state.at[static_cast<std::size_t>(slot)] <= state[Stream::kCompute]) mask |= bit(slot);
  }
  return mask;
}

std::size_t at(Category category) {
  return static_cast<std::size_t>(category);
}

}  // namespace

// ---- times only
// ----------------------------------------------------------------------------------

void FastLane::reset() {
  state_.at.fill(0);
  state_.running.clear();
  pending_ = nullptr;
  behind_ = not_ahead(state_);
}

void FastLane::run_whole(ChainId id, ChainTable::Entry& entry) {
  settle();
  table_->run(id, entry, state_);
  behind_ = not_ahead(state_);
}

void FastLane::settle() {
  if (pending_ == nullptr) return;
  if (pending_->lean.touches == 0) {
    pending_ = nullptr;
    return;
  }
  RankState before = state_;
  before[Stream::kHost] = pending_host_;
  before[Stream::kCompute] = pending_compute_;
  const LinearMap::Times after = pending_->map(before.at);
  for (int slot = 0; slot < kSlots; ++slot) {
    const auto s = static_cast<std::size_t>(slot);
    if ((pending_->lean.touches & bit(slot)) != 0) state_.at[s] = after[s];
  }
  pending_ = nullptr;
}

double FastLane::reach_barrier() {
  double& compute = state_[Stream::kCompute];
  compute = std::max(compute, state_[Stream::kHost]);
  return compute;
}

void FastLane::pass_barrier(double /*latest*/, double after) {
  state_[Stream::kCompute] = after;
}

double FastLane::device_end() {
  settle();
  return last_of_device(state_);
}

// ---- times and where they go
// ---------------------------------------------------------------------

void FollowedLane::reset() {
  state_.at.fill(0);
  state_.running.clear();
  spent_ = {};
}

void FollowedLane::wait_for_host() {
  if (state_[Stream::kHost] <= state_[Stream::kCompute]) return;
  state_[Stream::kCompute] = state_[Stream::kHost];
  spent(Stream::kCompute) = spent(Stream::kHost);
}

void FollowedLane::receive(const Arrival& arrival) {
  wait_for_host();
  double& compute = state_[Stream::kCompute];
  if (arrival.time <= compute) return;
  const double gap = arrival.time - compute, on_wire = std::min(gap, arrival.on_wire);
  spent(Stream::kCompute)[at(Category::kExposedPp)] += on_wire;
  spent(Stream::kCompute)[at(Category::kBubble)] += gap - on_wire;
  compute = arrival.time;
}

double FollowedLane::send(double seconds, bool blocking) {
  Stream source = Stream::kCompute;
  if (state_[Stream::kPipe] > state_[source]) source = Stream::kPipe;
  if (state_[Stream::kHost] > state_[source]) source = Stream::kHost;
  const double arrival = state_[source] + seconds;
  Breakdown path = spent(source);
  path[at(Category::kExposedPp)] += seconds;
  spent(Stream::kPipe) = path;
  state_[Stream::kPipe] = arrival;
  if (blocking) {
    spent(Stream::kCompute) = path;
    state_[Stream::kCompute] = arrival;
  }
  return arrival;
}

double FollowedLane::reach_barrier() {
  wait_for_host();
  return state_[Stream::kCompute];
}

void FollowedLane::pass_barrier(double latest, double after) {
  double& compute = state_[Stream::kCompute];
  spent(Stream::kCompute)[at(Category::kBubble)] += latest - compute;
  spent(Stream::kCompute)[at(Category::kExposedDp)] += after - latest;
  compute = after;
}

double FollowedLane::device_end() const {
  return last_of_device(state_);
}

const Breakdown& FollowedLane::breakdown() const {
  std::size_t last = 0;
  for (std::size_t s = 0; s < static_cast<std::size_t>(kStreams); ++s) {
    if (state_.at[s] > state_.at[last]) last = s;
  }
  return spent_[last];
}

void FollowedLane::repeat(const Snapshot& before, double periods) {
  for (std::size_t s = 0; s < spent_.size(); ++s) {
    for (std::size_t c = 0; c < kCategories; ++c) {
      spent_[s][c] += periods * (spent_[s][c] - before[s][c]);
    }
  }
}

}  // namespace forerun

#include "model/engine/block_run.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace forerun {
namespace {

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}
constexpr std::size_t kHostSlot = static_cast<std::size_t>(slot_of(Stream::kHost));
constexpr std::size_t kComputeSlot = static_cast<std::size_t>(slot_of(Stream::kCompute));

/// Collectives that ended before the compute stream is ready can slow nothing any more.
void forget_finished(RankState& state) {
  const double ready = state.at[kComputeSlot];
  auto& running = state.running;
  running.erase(std::remove_if(running.begin(), running.end(),
                               [&](const RunningCollective& c) { return c.end <= ready; }),
                running.end());
}

/// Adjacent collectives of one kind are one interval, so a backlog stays small.
void note_running(RankState& state, double begin, double end, CollectiveKind kind) {
  if (!state.running.empty()) {
    RunningCollective& last = state.running.back();
    if (last.kind == kind && last.end == begin) {
      last.end = end;
      return;
    }
  }
  state.running.push_back({begin, end, kind});
}

}  // namespace

double BlockRunner::stretched_end(double start, double seconds, KernelFamily family,
                                  const RateTable& rates, const RankState& state) {
  double now = start, left = seconds;
  while (true) {
    double rate = 1, next = std::numeric_limits<double>::infinity();
    for (const RunningCollective& c : state.running) {
      if (c.end <= now) continue;
      if (c.begin > now) {
        next = std::min(next, c.begin);
        continue;
      }
      rate *= rates.rate(family, c.kind);
      next = std::min(next, c.end);
    }
    if (left <= rate * (next - now)) return now + left / rate;
    left -= rate * (next - now);
    now = next;
  }
}

namespace {

/// Watches nothing.
struct Blind {
  void begin(std::size_t /*operations*/) {}
  void wait(double /*time*/, int /*slot*/, std::size_t /*after*/, bool /*decides*/) {}
  void placed(const Operation& /*op*/, std::size_t /*i*/, double /*start*/, double /*end*/) {}
  void end(const Block& /*block*/) {}
};

/// Notes by how much times from outside lost.
struct Measure {
  Margins* margins;
  const RankState* state;
  SlotMask asked = 0;

  void begin(std::size_t /*operations*/) {}
  void wait(double /*time*/, int slot, std::size_t /*after*/, bool /*decides*/) {
    if (slot >= 0) asked |= bit(slot) & margins->outside;
  }
  void placed(const Operation& op, std::size_t /*i*/, double start, double /*end*/) {
    lose(slot_of(Stream::kHost), start - (state->at[kHostSlot] + op.issued_at));
    for (; asked != 0; asked &= asked - 1) {
      const int slot = std::countr_zero(asked);
      lose(slot, start - state->at[at(slot)]);
    }
    if (op.stream != kNoSlot) margins->outside &= ~bit(op.stream);
    if (op.records != kNoSlot) margins->outside &= ~bit(op.records);
  }
  void end(const Block& /*block*/) {}

  void lose(int slot, double by) const {
    margins->margin[at(slot)] = std::min(margins->margin[at(slot)], by);
  }
};

void charge(Breakdown& spent, const Operation& op, double alone, double actual) {
  spent[static_cast<std::size_t>(op.category)] += alone;
  spent[static_cast<std::size_t>(Category::kInterference)] += actual - alone;
}

/// Follows the critical path of each slot.
struct Follow {
  SlotBreakdowns* spent;
  std::vector<Breakdown>* ends;
  const Breakdown* source = nullptr;  // of the operation being placed; null: the host decides

  void begin(std::size_t operations) {
    if (ends->size() < operations) ends->resize(operations);
  }
  void wait(double /*time*/, int slot, std::size_t after, bool decides) {
    if (decides) source = slot >= 0 ? &(*spent)[at(slot)] : &(*ends)[after];
  }
  void placed(const Operation& op, std::size_t i, double start, double end) {
    Breakdown path = source != nullptr ? *source : (*spent)[kHostSlot];
    if (source == nullptr) path[static_cast<std::size_t>(Category::kHost)] += op.issued_at;
    charge(path, op, op.seconds, end - start);
    (*ends)[i] = path;
    if (op.stream != kNoSlot) (*spent)[at(op.stream)] = path;
    if (op.records != kNoSlot) (*spent)[at(op.records)] = path;
    source = nullptr;
  }
  void end(const Block& block) {
    (*spent)[kHostSlot][static_cast<std::size_t>(Category::kHost)] += block.host_seconds;
  }
};

}  // namespace

void Margins::clear() {
  margin.fill(std::numeric_limits<double>::infinity());
  outside = bit(kSlots) - 1;
}

template <class Observer>
void BlockRunner::run_block(const Block& block, RankState& state, Observer observer) {
  const double host = state.at[kHostSlot];
  const std::size_t n = block.operations.size();
  if (ends_.size() < n) ends_.resize(n);
  observer.begin(n);
  for (std::size_t i = 0; i < n; ++i) {
    const Operation& op = block.operations[i];
    double start = host + op.issued_at;
    const auto wait = [&](double time, int slot, std::size_t after) {
      const bool decides = time > start;
      observer.wait(time, slot, after, decides);
      if (decides) start = time;
    };
    if (op.stream != kNoSlot) wait(state.at[at(op.stream)], op.stream, 0);
    for (const std::int16_t a : op.after)
      wait(ends_[at(a)], -1, at(a));
    for (const std::int8_t w : op.waits)
      wait(state.at[at(w)], w, 0);
    const bool stretches = op.stream == static_cast<int>(kComputeSlot) && !state.running.empty();
    const double end =
        stretches ? stretched_end(start, op.seconds, op.family, rates_, state) : start + op.seconds;
    ends_[i] = end;
    observer.placed(op, i, start, end);
    if (op.stream != kNoSlot) state.at[at(op.stream)] = end;
    if (op.records != kNoSlot) state.at[at(op.records)] = end;
    if (op.slows) note_running(state, start, end, op.collective);
  }
  state.at[kHostSlot] = host + block.host_seconds;
  observer.end(block);
  if (!state.running.empty()) forget_finished(state);
}

void BlockRunner::run(const Block& block, RankState& state) {
  run_block(block, state, Blind{});
}

void BlockRunner::run(const Block& block, RankState& state, Margins& margins) {
  run_block(block, state, Measure{&margins, &state});
}

void BlockRunner::run(const Block& block, RankState& state, SlotBreakdowns& spent) {
  run_block(block, state, Follow{&spent, &spent_});
}

}  // namespace forerun

#include "model/engine/block_run.hpp"

#include <algorithm>
#include <limits>

namespace forerun {
namespace {

std::size_t at(int slot) { return static_cast<std::size_t>(slot); }
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

void charge(Breakdown& spent, const Operation& op, double alone, double actual) {
  spent[static_cast<std::size_t>(op.category)] += alone;
  spent[static_cast<std::size_t>(Category::kInterference)] += actual - alone;
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

template <bool kFollow>
void BlockRunner::run_block(const Block& block, RankState& state, SlotBreakdowns* spent) {
  const double host = state.at[kHostSlot];
  const std::size_t n = block.operations.size();
  if (ends_.size() < n) ends_.resize(n);
  if constexpr (kFollow) {
    if (spent_.size() < n) spent_.resize(n);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const Operation& op = block.operations[i];
    const bool marker = op.stream == kNoSlot;
    double start = host + op.issued_at;
    const Breakdown* source = nullptr;  // null: the host decides
    const auto wait = [&](double time, const Breakdown* from) {
      if (time > start) {
        start = time;
        source = from;
      }
    };
    if (!marker) wait(state.at[at(op.stream)], kFollow ? &(*spent)[at(op.stream)] : nullptr);
    for (const std::int16_t a : op.after) {
      wait(ends_[at(a)], kFollow ? &spent_[at(a)] : nullptr);
    }
    for (const std::int8_t w : op.waits) {
      wait(state.at[at(w)], kFollow ? &(*spent)[at(w)] : nullptr);
    }
    const bool stretches = op.stream == static_cast<int>(kComputeSlot) && !state.running.empty();
    const double end = stretches
                           ? stretched_end(start, op.seconds, op.family, *rates_, state)
                           : start + op.seconds;
    ends_[i] = end;
    if constexpr (kFollow) {
      Breakdown path = source != nullptr ? *source : (*spent)[kHostSlot];
      if (source == nullptr) path[static_cast<std::size_t>(Category::kHost)] += op.issued_at;
      charge(path, op, op.seconds, end - start);
      spent_[i] = path;
      if (!marker) (*spent)[at(op.stream)] = path;
      if (op.records != kNoSlot) (*spent)[at(op.records)] = path;
    }
    if (!marker) state.at[at(op.stream)] = end;
    if (op.records != kNoSlot) state.at[at(op.records)] = end;
    if (op.slows) note_running(state, start, end, op.collective);
  }
  state.at[kHostSlot] = host + block.host_seconds;
  if constexpr (kFollow) {
    (*spent)[kHostSlot][static_cast<std::size_t>(Category::kHost)] += block.host_seconds;
  }
  if (!state.running.empty()) forget_finished(state);
}

void BlockRunner::run(const Block& block, RankState& state) {
  run_block<false>(block, state, nullptr);
}

void BlockRunner::run(const Block& block, RankState& state, SlotBreakdowns& spent) {
  run_block<true>(block, state, &spent);
}

}  // namespace forerun

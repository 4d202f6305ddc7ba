#include "model/engine/chain_run.hpp"

#include <bit>

namespace forerun {
namespace {

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

/// The state as a vector of times: slots, then beginnings and ends of running collectives.
void flatten(const RankState& state, std::vector<double>& out) {
  out.assign(state.at.begin(), state.at.end());
  for (const RunningCollective& c : state.running) {
    out.push_back(c.begin);
    out.push_back(c.end);
  }
}

/// For each slot those whose times before a block its time afterwards depends on. `ends` is
/// scratch.
std::array<SlotMask, kSlots> feeds_of(const Block& block, std::vector<SlotMask>& ends) {
  std::array<SlotMask, kSlots> feeds;
  for (int slot = 0; slot < kSlots; ++slot)
    feeds[at(slot)] = bit(slot);
  ends.clear();
  for (const Operation& op : block.operations) {
    SlotMask mask = bit(slot_of(Stream::kHost));
    if (op.stream != kNoSlot) mask |= feeds[at(op.stream)];
    for (const std::int16_t a : op.after)
      mask |= ends[at(a)];
    for (const std::int8_t w : op.waits)
      mask |= feeds[at(w)];
    if (op.stream != kNoSlot) feeds[at(op.stream)] = mask;
    if (op.records != kNoSlot) feeds[at(op.records)] = mask;
    ends.push_back(mask);
  }
  return feeds;
}

/// Whether a slot that advances by less than the compute stream goes on so: none that feeds it may
/// advance by more.
bool may_lag(int slot, const std::array<SlotMask, kSlots>& feeds, std::span<const double> shift) {
  for (SlotMask rest = feeds[at(slot)]; rest != 0; rest &= rest - 1) {
    if (shift[at(std::countr_zero(rest))] > shift[at(slot)]) return false;
  }
  return true;
}

void advance(RankState& state, const std::vector<double>& shift, double periods) {
  std::size_t i = 0;
  for (double& time : state.at)
    time += periods * shift[i++];
  for (RunningCollective& c : state.running) {
    c.begin += periods * shift[i++];
    c.end += periods * shift[i++];
  }
}

}  // namespace

struct ChainRunner::Blind {
  ChainRunner& self;
  void turn(const Block& block, RankState& state) { self.blocks_.run(block, state); }
  void begin() {}
  void note() {}
  void advance(int /*period*/, double /*periods*/) {}
};

struct ChainRunner::Measure {
  ChainRunner& self;
  Margins& margins;
  void turn(const Block& block, RankState& state) { self.blocks_.run(block, state, margins); }
  void begin() {}
  void note() {}
  /// In later periods a time from outside loses by as much or by more.
  void advance(int /*period*/, double /*periods*/) {}
};

struct ChainRunner::Follow {
  ChainRunner& self;
  SlotBreakdowns& spent;
  void turn(const Block& block, RankState& state) { self.blocks_.run(block, state, spent); }
  void begin() { self.spent_history_.clear(); }
  void note() { self.spent_history_.push_back(spent); }
  void advance(int period, double periods) {
    const auto& history = self.spent_history_;
    const SlotBreakdowns& before = history[history.size() - 1 - static_cast<std::size_t>(period)];
    for (std::size_t s = 0; s < spent.size(); ++s) {
      for (std::size_t c = 0; c < kCategories; ++c) {
        spent[s][c] += periods * (spent[s][c] - before[s][c]);
      }
    }
  }
};

template <class Observer>
void ChainRunner::run_repeated(const Block& block, std::int64_t count, RankState& state,
                               Observer& observer) {
  if (count < 4) {  // too few turns for a period to pay
    for (std::int64_t i = 0; i < count; ++i)
      observer.turn(block, state);
    turns_ += count;
    return;
  }
  period_.clear();
  observer.begin();
  const auto feeds = feeds_of(block, feeds_of_operations_);
  for (std::int64_t left = count; left > 0;) {
    observer.turn(block, state);
    ++turns_;
    --left;
    flatten(state, times_);
    period_.push(times_);
    observer.note();
    leads_.assign(1, slot_of(Stream::kCompute));
    for (std::size_t i = state.at.size(); i < times_.size(); ++i)
      leads_.push_back(static_cast<int>(i));  // collectives under way
    const int period = period_.find(leads_, [&](int slot, std::span<const double> shift) {
      return may_lag(slot, feeds, shift);
    });
    if (period == 0 || left < period) continue;
    const auto periods = static_cast<double>(left / period);
    advance(state, period_.shift(), periods);
    observer.advance(period, periods);
    turns_ += left % period;
    for (left %= period; left > 0; --left)
      observer.turn(block, state);
  }
}

template <class Observer>
void ChainRunner::run_chain(Chain chain, RankState& state, Observer& observer) {
  for (const ChainLink& link : chain)
    run_repeated((*pool_)[link.block], link.count, state, observer);
}

void ChainRunner::run(Chain chain, RankState& state) {
  Blind blind{*this};
  run_chain(chain, state, blind);
}

void ChainRunner::run(Chain chain, RankState& state, Margins& margins) {
  margins.clear();
  Measure measure{*this, margins};
  run_chain(chain, state, measure);
}

void ChainRunner::run(Chain chain, RankState& state, SlotBreakdowns& spent) {
  Follow follow{*this, spent};
  run_chain(chain, state, follow);
}

bool is_linear(Chain chain, const ProgramPool& pool, const RateTable& rates) {
  for (const ChainLink& link : chain) {
    for (const Operation& op : pool[link.block].operations) {
      if (!op.slows) continue;
      for (std::size_t family = 0; family < kKernelFamilies; ++family) {
        if (rates.rate(static_cast<KernelFamily>(family), op.collective) != 1.0) return false;
      }
    }
  }
  return true;
}

}  // namespace forerun

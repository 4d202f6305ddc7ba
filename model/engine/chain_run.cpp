#include "model/engine/chain_run.hpp"

#include <algorithm>

namespace forerun {
namespace {

constexpr std::array<int, 1> kLead{slot_of(Stream::kCompute)};

/// The state as a vector of times: slots, then beginnings and ends of running collectives.
void flatten(const RankState& state, std::vector<double>& out) {
  out.assign(state.at.begin(), state.at.end());
  for (const RunningCollective& c : state.running) {
    out.push_back(c.begin);
    out.push_back(c.end);
  }
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
  for (std::int64_t left = count; left > 0;) {
    observer.turn(block, state);
    ++turns_;
    --left;
    flatten(state, times_);
    period_.push(times_);
    observer.note();
    const int period = period_.find(kLead);
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

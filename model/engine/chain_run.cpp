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
  for (double& time : state.at) time += periods * shift[i++];
  for (RunningCollective& c : state.running) {
    c.begin += periods * shift[i++];
    c.end += periods * shift[i++];
  }
}

void advance(SlotBreakdowns& spent, const SlotBreakdowns& before, double periods) {
  for (std::size_t s = 0; s < spent.size(); ++s) {
    for (std::size_t c = 0; c < kCategories; ++c) {
      spent[s][c] += periods * (spent[s][c] - before[s][c]);
    }
  }
}

}  // namespace

void ChainRunner::turn(const Block& block, RankState& state, SlotBreakdowns* spent) {
  ++turns_;
  if (spent != nullptr) {
    blocks_.run(block, state, *spent);
  } else {
    blocks_.run(block, state);
  }
}

void ChainRunner::run_chain(const Chain& chain, RankState& state, SlotBreakdowns* spent) {
  for (const ChainLink& link : chain) run_repeated((*pool_)[link.block], link.count, state, spent);
}

void ChainRunner::run_repeated(const Block& block, std::int64_t count, RankState& state,
                               SlotBreakdowns* spent) {
  if (count < 4) {  // too few turns for a period to pay
    for (std::int64_t i = 0; i < count; ++i) turn(block, state, spent);
    return;
  }
  period_.clear();
  spent_history_.clear();
  for (std::int64_t left = count; left > 0;) {
    turn(block, state, spent);
    --left;
    flatten(state, times_);
    period_.push(times_);
    if (spent != nullptr) spent_history_.push_back(*spent);
    const int period = period_.find(kLead);
    if (period == 0 || left < period) continue;
    const auto periods = static_cast<double>(left / period);
    advance(state, period_.shift(), periods);
    if (spent != nullptr) {
      advance(*spent, spent_history_[spent_history_.size() - 1 - static_cast<std::size_t>(period)],
              periods);
    }
    for (left %= period; left > 0; --left) turn(block, state, spent);
  }
}

bool is_linear(const Chain& chain, const ProgramPool& pool, const RateTable& rates) {
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

LinearMap linear_map(const Chain& chain, const ProgramPool& pool) {
  LinearMap map;
  for (const ChainLink& link : chain) {
    const LinearMap block = LinearMap::of(pool[link.block]);
    map = map.then(link.count == 1 ? block : block.repeated(link.count));
  }
  return map;
}

}  // namespace forerun

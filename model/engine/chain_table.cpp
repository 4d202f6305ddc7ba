#include "model/engine/chain_table.hpp"

#include <limits>

namespace forerun {
namespace {

constexpr int kHost = slot_of(Stream::kHost), kCompute = slot_of(Stream::kCompute);
constexpr std::size_t kMostOutcomes = 4;
constexpr double kNever = -std::numeric_limits<double>::infinity();

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

bool reads_slot(const LinearMap& map, int slot) {
  for (int to = 0; to < kSlots; ++to) {
    if (to != slot && map.weight(slot, to) > kNever) return true;
  }
  return false;
}

bool touches_slot(const LinearMap& map, int slot) {
  for (int from = 0; from < kSlots; ++from) {
    if (from != slot && map.weight(from, slot) > kNever) return true;
  }
  return map.weight(slot, slot) != 0;
}

/// Whatever a slot that is not ahead of the compute stream would decide, that stream decides.
bool behind_compute(const LinearMap& map, int slot) {
  for (int to = 0; to < kSlots; ++to) {
    if (map.weight(slot, to) > map.weight(kCompute, to)) return false;
  }
  return true;
}

}  // namespace

LeanMap LeanMap::of(const LinearMap& map) {
  LeanMap lean;
  lean.after_compute = map.weight(kCompute, kCompute);
  lean.after_host = map.weight(kHost, kCompute);
  lean.launching = map.weight(kHost, kHost);
  if (map.weight(kCompute, kHost) > kNever) return lean;
  for (int slot = 0; slot < kSlots; ++slot) {
    if (slot == kHost || slot == kCompute) continue;
    const bool reads = reads_slot(map, slot), touches = touches_slot(map, slot);
    if (reads) lean.reads |= bit(slot);
    if (touches) lean.touches |= bit(slot);
    if ((reads || touches) && !behind_compute(map, slot)) return lean;
    const bool ends_behind = map.weight(kCompute, slot) <= lean.after_compute &&
                             map.weight(kHost, slot) <= lean.after_host;
    if (touches && !ends_behind) return lean;
  }
  lean.reads |= lean.touches;
  lean.known = true;
  return lean;
}

bool ChainTable::Entry::Outcome::holds_for(const RankState& state) const {
  const double base = state.at[at(kCompute)];
  const double tolerance = rounding_of(base);
  for (std::size_t s = 0; s < state.at.size(); ++s) {
    const double change = state.at[s] - base - before[s];
    const bool decided = margins.margin[s] <= 0;
    if (decided ? change > tolerance || change < -tolerance : change >= margins.margin[s]) {
      return false;
    }
  }
  return true;
}

void ChainTable::Entry::Outcome::apply(RankState& state) const {
  const double base = state.at[at(kCompute)];
  const double host = state.at[at(kHost)] + after[at(kHost)] - before[at(kHost)];
  for (std::size_t s = 0; s < state.at.size(); ++s) {
    if ((margins.outside & bit(static_cast<int>(s))) == 0) state.at[s] = base + after[s];
  }
  state.at[at(kHost)] = host;
  state.running.clear();
  for (const RunningCollective& c : running) {
    state.running.push_back({base + c.begin, base + c.end, c.kind});
  }
}

ChainTable::Entry& ChainTable::learn(ChainId id) {
  const auto chain = static_cast<std::size_t>(id.index());
  if (chain >= by_chain_.size()) by_chain_.resize(2 * chain + 1);
  Entry& entry = entries_.emplace_back();
  by_chain_[chain] = &entry;
  entry.linear = is_linear(pool_[id], pool_, rates_);
  if (entry.linear) {
    entry.map = linear_map(pool_[id]);
    entry.lean = LeanMap::of(entry.map);
  }
  return entry;
}

LinearMap ChainTable::linear_map(Chain chain) {
  bool first = true;
  LinearMap map;
  for (const ChainLink& link : chain) {
    const Block& block = pool_[link.block];
    if (block.operations.empty() && block.host_seconds == 0) continue;
    const LinearMap& turns = links_.find_or_make({link}, [&] {
      const LinearMap once = LinearMap::of(block);
      return link.count == 1 ? once : once.repeated(link.count);
    });
    map = first ? turns : map.then(turns);
    first = false;
  }
  return map;
}

void ChainTable::run(ChainId id, Entry& entry, RankState& state) {
  if (!state.running.empty()) {  // kernels may still be slowed by what runs from before
    runner_.run(pool_[id], state);
  } else if (entry.linear) {
    state.at = entry.map(state.at);
  } else {
    run_general(id, entry, state);
  }
}

void ChainTable::run_general(ChainId id, Entry& entry, RankState& state) {
  for (const Entry::Outcome& known : entry.outcomes) {
    if (known.holds_for(state)) return known.apply(state);
  }
  if (entry.outcomes.size() < kMostOutcomes) entry.outcomes.emplace_back();
  Entry::Outcome& outcome = entry.outcomes[entry.oldest];
  entry.oldest = (entry.oldest + 1) % kMostOutcomes;
  const double base = state.at[at(kCompute)];
  const auto relative = [&](const std::array<double, kSlots>& times) {
    std::array<double, kSlots> out{};
    for (std::size_t s = 0; s < out.size(); ++s)
      out[s] = times[s] - base;
    return out;
  };
  outcome.before = relative(state.at);
  runner_.run(pool_[id], state, outcome.margins);
  outcome.after = relative(state.at);
  outcome.running.clear();
  for (const RunningCollective& c : state.running) {
    outcome.running.push_back({c.begin - base, c.end - base, c.kind});
  }
}

}  // namespace forerun

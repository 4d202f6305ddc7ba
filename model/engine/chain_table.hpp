#pragma once

// Chains in the form in which they run fastest without changing what comes out: a max-plus map
// where nothing is slowed by a collective, and in that case often two numbers; else what came out
// before of a state that makes no difference.

#include <deque>
#include <vector>

#include "base/memo.hpp"
#include "model/engine/chain_run.hpp"
#include "model/engine/linear_map.hpp"

namespace forerun {

/// A linear chain as seen by the host and the compute stream alone:
///   compute' = max(compute + after_compute, host + after_host),   host' = host + launching.
/// Holds while every slot of `reads` is not ahead of the compute stream; then the slots of
/// `touches` are not ahead of it afterwards.
struct LeanMap {
  bool known = false;
  double after_compute = 0, after_host = 0, launching = 0;
  SlotMask reads = 0, touches = 0;

  static LeanMap of(const LinearMap& map);
};

struct ChainLinkKey {
  ChainLink link;
  bool operator==(const ChainLinkKey& other) const {
    return link.block == other.link.block && link.count == other.link.count;
  }
  [[nodiscard]] std::size_t hash() const { return hash_of(link.block.index(), link.count); }
};

class ChainTable {
 public:
  ChainTable(const ProgramPool& pool, const RateTable& rates)
      : pool_(pool), rates_(rates), runner_(pool, rates) {}

  struct Entry {
    bool linear = false;
    LinearMap map;
    LeanMap lean;
    struct Outcome;
    std::vector<Outcome> outcomes;  // of a chain that is not linear
    std::size_t oldest = 0;
  };

  Entry& operator[](ChainId id) {
    const auto chain = static_cast<std::size_t>(id.index());
    if (chain < by_chain_.size() && by_chain_[chain] != nullptr) return *by_chain_[chain];
    return learn(id);
  }
  /// Runs a chain on a whole state.
  void run(ChainId id, Entry& entry, RankState& state);

 private:
  Entry& learn(ChainId id);
  [[nodiscard]] LinearMap linear_map(Chain chain);
  void run_general(ChainId id, Entry& entry, RankState& state);

  const ProgramPool& pool_;
  RateTable rates_;
  ChainRunner runner_;
  std::vector<Entry*> by_chain_;  // null: not asked for yet
  std::deque<Entry> entries_;     // lanes keep pointers into it
  Memo<ChainLinkKey, LinearMap> links_;
};

/// What a chain made of one state, times relative to the compute stream's before it.
struct ChainTable::Entry::Outcome {
  std::array<double, kSlots> before{};
  Margins margins;
  std::array<double, kSlots> after{};
  boost::container::small_vector<RunningCollective, 6> running;

  /// Whether a state comes to the same: what decided something is equal, what lost would lose
  /// again.
  [[nodiscard]] bool holds_for(const RankState& state) const;
  void apply(RankState& state) const;
};

}  // namespace forerun

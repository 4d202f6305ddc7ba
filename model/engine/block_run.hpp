#pragma once

// One block run on a rank's state: each operation placed in program order.

#include <cstdint>
#include <vector>

#include "model/engine/rank_state.hpp"

namespace forerun {

using SlotMask = std::uint32_t;
static_assert(kSlots <= 32);
constexpr SlotMask bit(int slot) {
  return SlotMask{1} << slot;
}

/// How a run depended on the times that slots had when it began: by how much each lost every
/// maximum that it took part in (0: it decided one), as long as nothing had replaced it.
struct Margins {
  std::array<double, kSlots> margin{};
  SlotMask outside = 0;  ///< slots that still have the time from before
  void clear();
};

/// Runs blocks one after the other; owns the scratch space so that nothing is allocated per block.
class BlockRunner {
 public:
  explicit BlockRunner(const RateTable& rates) : rates_(rates) {}

  void run(const Block& block, RankState& state);
  /// The same, noting what it depended on.
  void run(const Block& block, RankState& state, Margins& margins);
  /// The same, following where the time goes.
  void run(const Block& block, RankState& state, SlotBreakdowns& spent);

  /// The end of a kernel of the compute stream that starts at `start` beside running collectives.
  static double stretched_end(double start, double seconds, KernelFamily family,
                              const RateTable& rates, const RankState& state);

 private:
  template <class Observer>
  void run_block(const Block& block, RankState& state, Observer observer);

  RateTable rates_;
  std::vector<double> ends_;
  std::vector<Breakdown> spent_;
};

}  // namespace forerun

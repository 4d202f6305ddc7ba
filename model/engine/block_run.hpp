#pragma once

// One block run on a rank's state: each operation placed in program order.

#include <vector>

#include "model/engine/rank_state.hpp"

namespace forerun {

/// Runs blocks one after the other; owns the scratch space so that nothing is allocated per block.
class BlockRunner {
 public:
  explicit BlockRunner(const RateTable& rates) : rates_(&rates) {}

  void run(const Block& block, RankState& state);
  /// The same, following where the time goes.
  void run(const Block& block, RankState& state, SlotBreakdowns& spent);

  /// The end of a kernel of the compute stream that starts at `start` beside running collectives.
  static double stretched_end(double start, double seconds, KernelFamily family,
                              const RateTable& rates, const RankState& state);

 private:
  template <bool kFollow>
  void run_block(const Block& block, RankState& state, SlotBreakdowns* spent);

  const RateTable* rates_;
  std::vector<double> ends_;
  std::vector<Breakdown> spent_;
};

}  // namespace forerun

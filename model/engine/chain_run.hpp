#pragma once

// A chain of blocks run on a rank's state; repeated blocks are folded.

#include <optional>
#include <vector>

#include "model/engine/block_run.hpp"
#include "model/engine/linear_map.hpp"
#include "model/engine/period.hpp"

namespace forerun {

class ChainRunner {
 public:
  ChainRunner(const ProgramPool& pool, const RateTable& rates)
      : pool_(&pool), blocks_(rates) {}

  /// Turns of repeated blocks that were run one by one, over the life of the runner.
  [[nodiscard]] std::int64_t turns() const { return turns_; }

  void run(const Chain& chain, RankState& state) { run_chain(chain, state, nullptr); }
  void run(const Chain& chain, RankState& state, SlotBreakdowns& spent) {
    run_chain(chain, state, &spent);
  }

 private:
  void run_chain(const Chain& chain, RankState& state, SlotBreakdowns* spent);
  void run_repeated(const Block& block, std::int64_t count, RankState& state,
                    SlotBreakdowns* spent);
  void turn(const Block& block, RankState& state, SlotBreakdowns* spent);

  const ProgramPool* pool_;
  BlockRunner blocks_;
  PeriodFinder period_;
  std::vector<double> times_;
  std::vector<SlotBreakdowns> spent_history_;
  std::int64_t turns_ = 0;
};

/// True where no kernel of the chain can be slowed by one of its own collectives.
bool is_linear(const Chain& chain, const ProgramPool& pool, const RateTable& rates);

/// The map of a linear chain.
LinearMap linear_map(const Chain& chain, const ProgramPool& pool);

}  // namespace forerun

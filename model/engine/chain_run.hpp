#pragma once

// A chain of blocks run on a rank's state; repeated blocks are folded.

#include <vector>

#include "model/engine/block_run.hpp"
#include "model/engine/period.hpp"

namespace forerun {

class ChainRunner {
 public:
  ChainRunner(const ProgramPool& pool, const RateTable& rates) : pool_(&pool), blocks_(rates) {}

  void run(Chain chain, RankState& state);
  /// The same, noting what it depended on.
  void run(Chain chain, RankState& state, Margins& margins);
  /// The same, following where the time goes.
  void run(Chain chain, RankState& state, SlotBreakdowns& spent);

  /// Turns of repeated blocks that were run one by one, over the life of the runner.
  [[nodiscard]] std::int64_t turns() const { return turns_; }

 private:
  template <class Observer>
  void run_chain(Chain chain, RankState& state, Observer& observer);
  template <class Observer>
  void run_repeated(const Block& block, std::int64_t count, RankState& state, Observer& observer);

  struct Blind;
  struct Measure;
  struct Follow;

  const ProgramPool* pool_;
  BlockRunner blocks_;
  PeriodFinder period_;
  std::vector<double> times_;
  std::vector<int> leads_;  // of times_
  std::vector<SlotMask> feeds_of_operations_;
  std::vector<SlotBreakdowns> spent_history_;
  std::int64_t turns_ = 0;
};

/// True where no kernel of the chain can be slowed by one of its own collectives.
bool is_linear(Chain chain, const ProgramPool& pool, const RateTable& rates);

}  // namespace forerun

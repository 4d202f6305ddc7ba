#pragma once

// Memory of a program, folded: the pair of each block, chain and schedule in closed form, never a
// timeline. What was live at the peak is found by walking down the tree, on demand.

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "model/program.hpp"

namespace forerun {

class MemoryEngine {
 public:
  explicit MemoryEngine(const ProgramPool& pool) : pool_(pool) {}

  /// What one step adds to a rank's resident bytes: net change and peak, in all and by pool.
  MemoryFold fold(const Program& program, int rank);

  /// What is live at the peak of all pools, by component; resident bytes included.
  struct Peak {
    std::int64_t bytes = 0;
    Resident live{};
    std::string where;  ///< "stage 0, backward of microbatch 0, decoder.backward 1 of 31"
  };
  Peak peak(const Program& program, int rank);

 private:
  const MemoryFold& chain_fold(ChainId id) {
    const auto at = static_cast<std::size_t>(id.index());
    return at < by_chain_.size() && by_chain_[at] != nullptr ? *by_chain_[at] : make_fold(id);
  }
  const MemoryFold& make_fold(ChainId id);

  const ProgramPool& pool_;
  std::vector<const MemoryFold*> by_chain_;  // null: not asked for yet
  std::deque<MemoryFold> folds_;
};

/// Bytes of all components together.
std::int64_t total(const Resident& resident);

}  // namespace forerun

#pragma once

// What the caching allocator's pool holds while the kernels of a block's passes make and free
// tensors.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/arena.hpp"
#include "model/kernel.hpp"

namespace forerun {

/// A tensor within one pass: the kernels that make and free it; -1: before or after the pass.
struct TensorLife {
  std::size_t tensor = 0;
  std::int64_t bytes = 0;
  int made = -1;
  int freed = -1;
};

/// Replays the allocator over passes that run one after the other and notes what its pool holds.
/// Holes that are left when the last pass ends are taken as used by what comes next.
class PoolReplay {
 public:
  void run(std::vector<Kernel>& kernels, const std::vector<TensorLife>& lives, bool last) {
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const auto self = static_cast<int>(k);
      MemoryChange& memory = kernels[k].memory;
      const std::int64_t before = held();
      for (const TensorLife& t : lives) {
        if (t.made != self) continue;
        made_.emplace_back(t.tensor, arena_.allocate(t.bytes));
        live_ += t.bytes;
      }
      const std::int64_t workspace = unnamed_bytes(memory, lives, self);
      const std::int64_t high = std::max(before, held()) + workspace;
      memory.held_allocating = high - before;
      for (const TensorLife& t : lives) {
        if (t.freed == self) free(t);
      }
      const bool ends = last && k + 1 == kernels.size();
      memory.held_freeing = (ends ? live_ : held()) - high;
    }
  }

 private:
  /// What the pool holds: the arena's extent, less what was freed of tensors made elsewhere.
  [[nodiscard]] std::int64_t held() const { return arena_.extent() - elsewhere_; }

  /// Workspaces that kernels allocate and free themselves.
  static std::int64_t unnamed_bytes(const MemoryChange& memory,
                                    const std::vector<TensorLife>& lives, int self) {
    std::int64_t bytes = 0;
    for (const MemoryDelta& d : memory.allocated)
      bytes += d.bytes;
    for (const TensorLife& t : lives)
      bytes -= t.made == self ? t.bytes : 0;
    return bytes;
  }

  void free(const TensorLife& t) {
    live_ -= t.bytes;
    const auto at = std::find_if(made_.begin(), made_.end(),
                                 [&](const auto& entry) { return entry.first == t.tensor; });
    if (at == made_.end()) {
      elsewhere_ += t.bytes;
      return;
    }
    arena_.free(at->second);
    made_.erase(at);
  }

  Arena arena_;
  std::vector<std::pair<std::size_t, Arena::Handle>> made_;
  std::int64_t elsewhere_ = 0;
  std::int64_t live_ = 0;
};

}  // namespace forerun

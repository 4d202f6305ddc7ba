#pragma once

// A replay of the caching allocator with expandable segments: one growing range of addresses a
// pool, best fit, neighbours merged when freed. What it holds is the highest address in use, which
// is more than what is live where a freed tensor is too small for the next one.
// (c10/cuda/CUDACachingAllocator.cpp; sizes are rounded by the caller.)

#include <cstddef>
#include <cstdint>
#include <vector>

namespace forerun {

class Arena {
 public:
  using Handle = std::int64_t;  ///< address of an allocation

  Handle allocate(std::int64_t bytes);
  void free(Handle handle);
  /// Bytes from the bottom to the end of the highest live allocation.
  [[nodiscard]] std::int64_t extent() const;

 private:
  struct Piece {
    std::int64_t begin;
    std::int64_t bytes;
    bool live;
  };
  [[nodiscard]] std::size_t find(Handle handle) const;

  std::vector<Piece> pieces_;  // by address, no two free neighbours, the last one live
};

}  // namespace forerun

#include "model/arena.hpp"

#include <algorithm>

#include "base/contract.hpp"

namespace forerun {

Arena::Handle Arena::allocate(std::int64_t bytes) {
  std::size_t best = pieces_.size();
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const bool fits = !pieces_[i].live && pieces_[i].bytes >= bytes;
    if (fits && (best == pieces_.size() || pieces_[i].bytes < pieces_[best].bytes)) best = i;
  }
  if (best == pieces_.size()) {
    pieces_.push_back({extent(), bytes, true});
    return pieces_.back().begin;
  }
  const std::int64_t left = pieces_[best].bytes - bytes, begin = pieces_[best].begin;
  pieces_[best].bytes = bytes;
  pieces_[best].live = true;
  if (left > 0) {
    pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(best) + 1,
                   {begin + bytes, left, false});
  }
  return begin;
}

std::size_t Arena::find(Handle handle) const {
  const auto at = std::lower_bound(pieces_.begin(), pieces_.end(), handle,
                                   [](const Piece& p, Handle h) { return p.begin < h; });
  FR_ASSERT(at != pieces_.end() && at->begin == handle && at->live);
  return static_cast<std::size_t>(at - pieces_.begin());
}

void Arena::free(Handle handle) {
  std::size_t i = find(handle);
  pieces_[i].live = false;
  const auto merge = [&](std::size_t into) {
    pieces_[into].bytes += pieces_[into + 1].bytes;
    pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(into) + 1);
  };
  if (i + 1 < pieces_.size() && !pieces_[i + 1].live) merge(i);
  if (i > 0 && !pieces_[i - 1].live) merge(--i);
  if (i + 1 == pieces_.size()) pieces_.pop_back();
}

std::int64_t Arena::extent() const {
  return pieces_.empty() ? 0 : pieces_.back().begin + pieces_.back().bytes;
}

}  // namespace forerun

#pragma once

// What the analytic engine carries along a rank's program: when each stream and event is ready, and
// the collectives that may still run beside later kernels.

#include <array>
#include <boost/container/small_vector.hpp>

#include "model/program.hpp"

namespace forerun {

/// Seconds by category.
using Breakdown = std::array<double, kCategories>;

struct RunningCollective {
  double begin = 0;
  double end = 0;
  CollectiveKind kind = CollectiveKind::kNone;
};

struct RankState {
  std::array<double, kSlots> at{};  ///< ready times of streams and events
  boost::container::small_vector<RunningCollective, 6> running;

  [[nodiscard]] double& operator[](Stream stream) {
    return at[static_cast<std::size_t>(slot_of(stream))];
  }
  [[nodiscard]] double operator[](Stream stream) const {
    return at[static_cast<std::size_t>(slot_of(stream))];
  }
};

/// Where the time up to each slot was spent, along the critical path that leads to it; each
/// slot's categories sum to its time. Kept only when a plan is to be explained.
using SlotBreakdowns = std::array<Breakdown, kSlots>;

}  // namespace forerun

#pragma once

// Time of fused attention by kernel family:  t = launch + F / R x (1 + s0 / s)
// F counts only query-key pairs that are computed (half under a causal mask): 4 x head_dim a pair
// forward, 10 x head_dim backward. R and s0 by family, pass and head dimension; s is the length of
// the keys that one call sees. Sources: FlashAttention's published tables (BSD-3-Clause), read per
// head dimension; residuals stand in the profile.

#include <array>

#include "base/quantity.hpp"
#include "model/kernel.hpp"
#include "workloads/plan.hpp"

namespace forerun {

struct AttentionRate {
  double peak_fraction = 0;  ///< of the dense bf16 peak; 0: not measured
  double ramp = 0;           ///< s0, tokens
};

/// Of one kernel family.
struct AttentionCosts {
  double launch = 0;  ///< s
  AttentionRate forward_64, forward_128, backward_64, backward_128;

  [[nodiscard]] bool known() const { return forward_128.peak_fraction > 0; }
};

Seconds attention_time(const AttentionShape& shape, bool backward, const AttentionCosts& costs,
                       FlopsPerSecond peak);

/// Floating-point operations of one call.
double attention_flops(const AttentionShape& shape, bool backward);

}  // namespace forerun

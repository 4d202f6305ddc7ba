#pragma once

// The clock that a GPU sustains under its power cap. Power is a constant part and a part that grows
// with the cube of the clock (voltage follows frequency), times the activity of the kernels:
//   cap = idle + activity x dynamic x (f / boost)^3   ->   f / boost = min(1, ((cap - idle) / ...)^(1/3))
// Tables of products were measured in bursts below the cap; in a training step neighbouring kernels,
// cold caches and chip spread take a further factor (in_step).

#include "base/dtype.hpp"

namespace forerun {

struct PowerCosts {
  double idle = 0;           ///< W
  double dynamic = 0;        ///< W at the boost clock, bf16 matrix products
  double in_step = 1;        ///< rate in a training step over a bare product at the same clock
  double fp8_activity = 1;   ///< of fp8 products, bf16 = 1
  double attention_activity = 1;
};

/// Sustained over boost clock at this activity.
double sustained_clock(const PowerCosts& costs, double cap_watts, double activity);

}  // namespace forerun

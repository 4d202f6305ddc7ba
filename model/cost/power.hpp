#pragma once

// The clock that a GPU sustains under its power cap. Power is a constant part and a part that grows
// with the cube of the clock (voltage follows frequency), times the activity of the kernels:
//   cap = idle + activity x dynamic x (f / boost)^3   ->   f / boost = min(1, ((cap - idle) /
//   ...)^(1/3))
// The clock follows the average power over many kernels, so all compute-bound kernels of a step run
// at one clock. Tables of products were measured in bursts below the cap; in a training step
// layouts, cold caches and neighbouring kernels take a further factor from products (in_step).

#include "base/dtype.hpp"

namespace forerun {

struct PowerCosts {
  double idle = 0;          ///< W
  double dynamic = 0;       ///< W at the boost clock, bf16 matrix products
  double in_step = 1;       ///< rate of products in a training step over bare ones, same clock
  double fp8_activity = 1;  ///< of a step whose products are fp8; of a bf16 step 1
  double chip_spread = 0;   ///< standard deviation of the clock from chip to chip, relative
};

/// The slowest of n chips sets the pace of a synchronous step: its time over the mean chip's, by
/// the expected largest of n normal deviates.
double slowest_of(double chips, double spread);

/// Sustained over boost clock at this activity.
double sustained_clock(const PowerCosts& costs, double cap_watts, double activity);

}  // namespace forerun

#include "model/cost/power.hpp"

#include <algorithm>
#include <cmath>

namespace forerun {

double sustained_clock(const PowerCosts& costs, double cap_watts, double activity) {
  const double room = std::max(1.0, cap_watts - costs.idle);
  return std::min(1.0, std::cbrt(room / (activity * costs.dynamic)));
}

double slowest_of(double chips, double spread) {
  if (chips <= 1) return 1;
  // Blom's approximation of the expected maximum: the normal quantile of (n - 0.375) / (n + 0.25).
  const double p = (chips - 0.375) / (chips + 0.25);
  const double t = std::sqrt(-2 * std::log(1 - p));  // quantile by Abramowitz and Stegun 26.2.23
  const double quantile = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                                  (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
  return 1 + spread * quantile;
}

}  // namespace forerun

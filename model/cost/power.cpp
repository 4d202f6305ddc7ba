#include "model/cost/power.hpp"

#include <algorithm>
#include <cmath>

namespace forerun {

double sustained_clock(const PowerCosts& costs, double cap_watts, double activity) {
  const double room = std::max(1.0, cap_watts - costs.idle);
  return std::min(1.0, std::cbrt(room / (activity * costs.dynamic)));
}

}  // namespace forerun

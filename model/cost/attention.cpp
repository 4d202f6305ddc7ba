#include "model/cost/attention.hpp"

#include <algorithm>

namespace forerun {
namespace {

/// Rates were measured at head dimensions 64 and 128; in between the inverse rate is interpolated,
/// below and above the nearer one is taken per FLOP.
AttentionRate at_head_dim(const AttentionRate& at64, const AttentionRate& at128, double dim) {
  const double x = std::clamp((dim - 64) / 64, 0.0, 1.0);
  AttentionRate rate;
  rate.peak_fraction = 1 / ((1 - x) / at64.peak_fraction + x / at128.peak_fraction);
  rate.ramp = (1 - x) * at64.ramp + x * at128.ramp;
  return rate;
}

}  // namespace

double attention_flops(const AttentionShape& shape, bool backward) {
  return shape.pairs * static_cast<double>(shape.head_dim) * (backward ? 10 : 4);
}

Seconds attention_time(const AttentionShape& shape, bool backward, const AttentionCosts& costs,
                       FlopsPerSecond peak) {
  const auto dim = static_cast<double>(shape.head_dim);
  const AttentionRate rate = backward ? at_head_dim(costs.backward_64, costs.backward_128, dim)
                                      : at_head_dim(costs.forward_64, costs.forward_128, dim);
  const double full = attention_flops(shape, backward) / (rate.peak_fraction * peak.value());
  const double ramp = 1 + rate.ramp / static_cast<double>(shape.kv_length);
  return Seconds(costs.launch + full * ramp);
}

}  // namespace forerun

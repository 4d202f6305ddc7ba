#include "model/cost/gemm.hpp"

#include <algorithm>
#include <cmath>

namespace forerun {

Seconds gemm_time(const GemmShape& shape, const GemmCosts& costs, const GemmDevice& device,
                  Accumulation accumulation) {
  constexpr double kTile = 64;
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
             k = static_cast<double>(shape.k), groups = static_cast<double>(shape.groups);
  const double rate = costs.peak_fraction * device.peak.value();
  const double waves = groups * std::ceil(m / kTile) * std::ceil(n / kTile) / device.sms;
  const double one = 2 * kTile * kTile * device.sms * (k + costs.depth) / rate;
  const double quantised = one * 0.5 * (std::ceil(waves) + std::max(waves, 1.0));
  double compute = std::min(quantised, costs.split + waves * one);
  compute *= 1 + costs.heat * std::log1p(2 * groups * m * n * k / 1e12);
  if (shape.layout == GemmLayout::kWgrad) compute *= costs.wgrad;
  if (accumulation == Accumulation::kFull) compute *= costs.full_accumulation;
  const double bytes = groups * (size_of(shape.dtype) * (m * k + n * k) + 2 * m * n);
  const double memory = bytes / (costs.hbm_fraction * device.hbm.value());
  const double both = std::cbrt(compute * compute * compute + memory * memory * memory);
  return Seconds(costs.launch + both);
}

}  // namespace forerun

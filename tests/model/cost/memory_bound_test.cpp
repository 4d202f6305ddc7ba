#include "model/cost/memory_bound.hpp"

#include <doctest/doctest.h>

using namespace forerun;

namespace {

MemoryBoundCosts costs() {
  MemoryBoundCosts c;
  c.launch = 2e-6;
  c.hbm_fraction.fill(0.5);
  c.hbm_fraction[static_cast<std::size_t>(KernelFamily::kFused)] = 0.8;
  return c;
}

double seconds(KernelFamily family, double bytes, int launches = 1) {
  return memory_bound_time(family, bytes, launches, costs(), BytesPerSecond(1e12)).value();
}

}  // namespace

TEST_CASE("bytes take their time at the family's share of the bandwidth, launches theirs") {
  // 1 GB at 0.5 x 1 TB/s: 2 ms; at 0.8: 1.25 ms.
  CHECK(seconds(KernelFamily::kEager, 1e9) == doctest::Approx(2e-3 + 2e-6));
  CHECK(seconds(KernelFamily::kFused, 1e9) == doctest::Approx(1.25e-3 + 2e-6));
  CHECK(seconds(KernelFamily::kEager, 1e9, 10) == doctest::Approx(2e-3 + 20e-6));
  CHECK(seconds(KernelFamily::kEager, 0) == doctest::Approx(2e-6));
}

#include "model/cost/power.hpp"

#include <doctest/doctest.h>

using namespace forerun;

namespace {

PowerCosts costs() {
  PowerCosts c;
  c.idle = 100;
  c.dynamic = 800;
  return c;
}

}  // namespace

TEST_CASE("the clock follows the cube root of the power left") {
  // (cap - idle) / dynamic = 1/8: half of the clock.
  CHECK(sustained_clock(costs(), 200, 1) == doctest::Approx(0.5));
  CHECK(sustained_clock(costs(), 100 + 800 * 0.729, 1) == doctest::Approx(0.9));
  // Half of the activity leaves twice the room: (1/4)^(1/3).
  CHECK(sustained_clock(costs(), 200, 0.5) == doctest::Approx(0.629961));
}

TEST_CASE("no cap raises the clock above boost, and none stops it") {
  CHECK(sustained_clock(costs(), 900, 1) == 1);
  CHECK(sustained_clock(costs(), 5000, 1) == 1);
  CHECK(sustained_clock(costs(), 50, 1) > 0);  // below idle
}

TEST_CASE("the slowest of many chips is some deviations behind the mean") {
  // Expected largest of n standard normals (Harter, Biometrika 48, 1961, table 1): n = 8: 1.4236,
  // n = 100: 2.5076. Blom's approximation is within 0.5%.
  CHECK(slowest_of(1, 0.02) == 1);
  CHECK(slowest_of(8, 0.02) == doctest::Approx(1 + 0.02 * 1.4236).epsilon(2e-4));
  CHECK(slowest_of(100, 0.02) == doctest::Approx(1 + 0.02 * 2.5076).epsilon(3e-4));
  CHECK(slowest_of(512, 0) == 1);
  double before = 1;
  for (const double chips : {2, 8, 64, 512, 16384}) {
    CHECK(slowest_of(chips, 0.02) > before);
    before = slowest_of(chips, 0.02);
  }
}

#include "model/cost/gemm.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "model/cost/profile.hpp"
#include "tests/support/plans.hpp"

using namespace forerun;

namespace {

// A part with round numbers: 100 SMs, 100 TFLOP/s, 1 TB/s, products at the full peak.
const GemmDevice kDevice{FlopsPerSecond(1e14), BytesPerSecond(1e12), 100};

GemmCosts ideal() {
  GemmCosts costs;
  costs.peak_fraction = 1;
  costs.hbm_fraction = 1;
  return costs;
}

GemmCosts hopper(DType type) {
  return load_profile(test::source_data(), "h100-sxm-80gb").gemm(type);
}

double seconds(GemmShape shape, const GemmCosts& costs, const GemmDevice& device = kDevice) {
  return gemm_time(shape, costs, device).value();
}

}  // namespace

TEST_CASE("a product that fills its waves runs at the peak") {
  // 640 x 640 outputs are 10 x 10 tiles: one wave of 100 SMs; 4 waves with twice m and n. k is so
  // deep that operands cost nothing: (mk + kn) 2 / 1e12 beside 2mnk / 1e14 is below 1%, cubed.
  const GemmShape one{640, 640, 1 << 20};
  CHECK(seconds(one, ideal()) == doctest::Approx(2.0 * 640 * 640 * (1 << 20) / 1e14).epsilon(0.01));
  GemmCosts costs = ideal();
  costs.hbm_fraction = 1e9;  // memory out of the way
  CHECK(seconds(one, costs) == doctest::Approx(2.0 * 640 * 640 * (1 << 20) / 1e14));
  CHECK(seconds({1280, 1280, 4096}, costs) == doctest::Approx(2.0 * 1280 * 1280 * 4096 / 1e14));
}

TEST_CASE("time steps where a wave begins") {
  // Half-smoothed: (ceil(w) + max(w, 1)) / 2 waves. 101 tiles: (2 + 1.01) / 2 = 1.505 waves of the
  // time that 100 tiles take; 150 tiles: 1.75; 200 tiles: 2.
  GemmCosts costs = ideal();
  costs.hbm_fraction = 1e9;
  costs.split = 1;  // splitting k costs a second: never chosen
  const auto tiles = [&](std::int64_t n) { return seconds({64 * n, 64, 4096}, costs); };
  const double wave = tiles(100);
  CHECK(tiles(50) == doctest::Approx(wave));  // half of the SMs idle
  CHECK(tiles(101) == doctest::Approx(1.505 * wave));
  CHECK(tiles(150) == doctest::Approx(1.75 * wave));
  CHECK(tiles(200) == doctest::Approx(2 * wave));
  CHECK(tiles(201) - tiles(200) > 10 * (tiles(200) - tiles(199)));
}

TEST_CASE("few tiles are split along k where that is faster") {
  // One tile: a wave of 100 SMs takes as long as 100 tiles; split: its cost and a hundredth of it.
  GemmCosts costs = ideal();
  costs.hbm_fraction = 1e9;
  costs.split = 5e-6;
  const double wave = 2.0 * 64 * 64 * 100 * 65536 / 1e14;
  CHECK(seconds({64, 64, 65536}, costs) == doctest::Approx(5e-6 + wave / 100));
}

TEST_CASE("a thin product is bound by reading its weight") {
  // m = 1: n x k weights of 2 bytes at 1 TB/s; the result and the row are nothing beside them.
  GemmCosts costs = ideal();
  costs.peak_fraction = 1e6;
  CHECK(seconds({1, 8192, 8192}, costs) == doctest::Approx(8192.0 * 8192 * 2 / 1e12).epsilon(1e-3));
}

TEST_CASE("no product beats the peak of its part or the bandwidth of its memory") {
  std::mt19937 random(5);
  for (const DType type : {DType::kBf16, DType::kFp8}) {
    const GemmCosts costs = hopper(type);
    const GemmDevice device{FlopsPerSecond(989.4e12), BytesPerSecond(3.35e12), 132};
    const auto size = [&] { return static_cast<std::int64_t>(1 + random() % 32768); };
    for (int i = 0; i < 2000; ++i) {
      const GemmShape s{size(), size(), size(), type, GemmLayout::kForward};
      const double flops =
          2 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
      const double bytes = static_cast<double>(size_of(type) * (s.m * s.k + s.n * s.k));
      const double t = seconds(s, costs, device);
      REQUIRE(t > flops / 989.4e12);
      REQUIRE(t > bytes / 3.35e12);
    }
  }
}

TEST_CASE("a product takes longer the larger any of its sizes") {
  const GemmCosts costs = hopper(DType::kBf16);
  const GemmDevice device{FlopsPerSecond(989.4e12), BytesPerSecond(3.35e12), 132};
  for (const std::int64_t m : {64, 500, 2048, 8192}) {
    for (const std::int64_t n : {64, 1000, 4096}) {
      for (const std::int64_t k : {64, 777, 4096}) {
        const double t = seconds({m, n, k}, costs, device);
        for (const std::int64_t more : {1, 63, 64, 640}) {
          CHECK(seconds({m + more, n, k}, costs, device) >= t);
          CHECK(seconds({m, n + more, k}, costs, device) >= t);
          CHECK(seconds({m, n, k + more}, costs, device) > t);
        }
      }
    }
  }
}

TEST_CASE("layout and accumulation scale the time of computing") {
  GemmCosts costs = ideal();
  costs.hbm_fraction = 1e9;
  costs.wgrad = 1.25;
  costs.full_accumulation = 1.5;
  const GemmShape forward{640, 640, 4096};
  GemmShape wgrad = forward;
  wgrad.layout = GemmLayout::kWgrad;
  const double once = seconds(forward, costs);
  CHECK(seconds(wgrad, costs) == doctest::Approx(1.25 * once));
  CHECK(gemm_time(forward, costs, kDevice, Accumulation::kFull).value() ==
        doctest::Approx(1.5 * once));
}

TEST_CASE("every launch costs its own time and large products run hot") {
  GemmCosts costs = ideal();
  costs.hbm_fraction = 1e9;
  const GemmShape shape{6400, 6400, 12207};  // about 1e12 operations: ln(1 + 1) more heat
  const double cool = seconds(shape, costs);
  costs.heat = 0.1;
  CHECK(seconds(shape, costs) == doctest::Approx(cool * (1 + 0.1 * std::log(2.0))).epsilon(1e-4));
  costs.heat = 0;
  costs.launch = 1e-3;
  CHECK(seconds(shape, costs) == doctest::Approx(cool + 1e-3));
}

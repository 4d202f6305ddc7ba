#include "model/cost/attention.hpp"

#include <doctest/doctest.h>

using namespace forerun;

namespace {

constexpr FlopsPerSecond kPeak(1e15);

AttentionShape shape(std::int64_t length, std::int64_t head_dim = 128) {
  AttentionShape s;
  s.batch = 1;
  s.heads = s.kv_heads = 32;
  s.head_dim = head_dim;
  s.q_length = s.kv_length = length;
  s.pairs = 32.0 * static_cast<double>(length * length) / 2;
  return s;
}

AttentionCosts costs() {
  AttentionCosts c;
  c.forward_128 = {0.5, 1000};
  c.backward_128 = {0.4, 1000};
  c.forward_64 = {0.25, 500};
  c.backward_64 = {0.2, 500};
  return c;
}

double seconds(const AttentionShape& s, bool backward, const AttentionCosts& c = costs()) {
  return attention_time(s, backward, c, kPeak).value();
}

}  // namespace

TEST_CASE("attention computes two products forward and five backward") {
  // 2 operations x head_dim a product and pair (FlashAttention-2, arXiv 2307.08691).
  CHECK(attention_flops(shape(1000), false) == doctest::Approx(2 * 2 * 128 * 32 * 5e5));
  CHECK(attention_flops(shape(1000), true) == doctest::Approx(5 * 2 * 128 * 32 * 5e5));
}

TEST_CASE("long sequences run at the family's rate and short ones ramp up to it") {
  // t = F / R (1 + s0 / s): at s = s0 twice the time a FLOP.
  const double ideal = attention_flops(shape(1000), false) / 0.5e15;
  CHECK(seconds(shape(1000), false) == doctest::Approx(2 * ideal));
  const double rate = attention_flops(shape(1 << 20), false) / seconds(shape(1 << 20), false);
  CHECK(rate == doctest::Approx(0.5e15).epsilon(1e-3));
}

TEST_CASE("backward has its own rate") {
  CHECK(seconds(shape(1000), true) ==
        doctest::Approx(2 * attention_flops(shape(1000), true) / 0.4e15));
}

TEST_CASE("between the head dimensions that were measured the inverse rate is interpolated") {
  // Half way, 96: 1 / R = (1 / 0.25 + 1 / 0.5) / 2 = 3, s0 = 750.
  const AttentionShape s = shape(750, 96);
  CHECK(seconds(s, false) == doctest::Approx(2 * attention_flops(s, false) * 3 / 1e15));
  // Outside the nearer one counts.
  const AttentionShape large = shape(1000, 256), small = shape(500, 32);
  CHECK(seconds(large, false) == doctest::Approx(2 * attention_flops(large, false) / 0.5e15));
  CHECK(seconds(small, false) == doctest::Approx(2 * attention_flops(small, false) / 0.25e15));
}

TEST_CASE("a call costs its launch, whatever it computes") {
  AttentionCosts c = costs();
  c.launch = 1e-3;
  CHECK(seconds(shape(1000), false, c) == doctest::Approx(seconds(shape(1000), false) + 1e-3));
}

TEST_CASE("a family that was not measured says so") {
  CHECK(costs().known());
  CHECK(!AttentionCosts{}.known());
}

#include "base/quantity.hpp"

#include <doctest/doctest.h>

#include <concepts>
#include <type_traits>

namespace forerun {
namespace {

template <class A, class B>
concept Adds = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Subtracts = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept AddsTo = requires(A a, B b) {
  a += b;
};
template <class A, class B>
concept Compares = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Equals = requires(A a, B b) {
  a == b;
};

// The requests compile where the dimensions agree, so it is the dimension that refuses.
static_assert(Adds<Seconds, Seconds> && !Adds<Seconds, Bytes> && !Adds<Bytes, Seconds>);
static_assert(Subtracts<Bytes, Bytes> && !Subtracts<Bytes, Flops>);
static_assert(AddsTo<Seconds&, Seconds> && !AddsTo<Seconds&, Bytes>);
static_assert(Compares<Seconds, Seconds> && !Compares<Seconds, Bytes>);
static_assert(Equals<Flops, Flops> && !Equals<Flops, FlopsPerSecond>);

// A plain number becomes a quantity only where it is asked to.
static_assert(std::constructible_from<Seconds, double> && !std::convertible_to<double, Seconds>);
static_assert(!std::convertible_to<Seconds, double> && !Adds<Seconds, double>);

// Dimensions multiply and divide, and cancel to a plain number.
static_assert(std::same_as<decltype(Bytes{} / Seconds{}), BytesPerSecond>);
static_assert(std::same_as<decltype(Bytes{} / BytesPerSecond{}), Seconds>);
static_assert(std::same_as<decltype(FlopsPerSecond{} * Seconds{}), Flops>);
static_assert(std::same_as<decltype(Flops{} / Bytes{} * Bytes{}), Flops>);
static_assert(std::same_as<decltype(Seconds{} / Seconds{}), double>);
static_assert(std::same_as<decltype(BytesPerSecond{} * Seconds{} / Bytes{}), double>);

static_assert(sizeof(Seconds) == sizeof(double) && std::is_trivially_copyable_v<Seconds>);

}  // namespace

TEST_CASE("a quantity holds SI units and starts at zero") {
  CHECK(Seconds().value() == 0);
  CHECK(Bytes(12).value() == 12);
  CHECK(kGiB == 1073741824.0);  // 2^30
  CHECK(kMiB == 1048576.0);     // 2^20
}

TEST_CASE("quantities of one dimension add, subtract, scale and compare") {
  Seconds t(3);
  CHECK((t + Seconds(0.5)).value() == 3.5);
  CHECK((t - Seconds(5)).value() == -2);
  CHECK((-t).value() == -3);
  CHECK((t * 4).value() == 12);
  CHECK((4 * t).value() == 12);
  CHECK((t / 4).value() == 0.75);
  CHECK(((t += Seconds(1)) -= Seconds(2)).value() == 2);
  CHECK(((t *= 6) /= 4).value() == 3);
  CHECK(Seconds(2) < Seconds(3));
  CHECK(Seconds(3) >= Seconds(3));
  CHECK(Seconds(3) != Seconds(2));
}

TEST_CASE("products and quotients carry their values") {
  // 16 GB over a link of 50 GB/s take 0.32 s.
  CHECK((Bytes(16e9) / BytesPerSecond(50e9)).value() == doctest::Approx(0.32).epsilon(1e-15));
  CHECK((FlopsPerSecond(989e12) * Seconds(2)).value() == 1978e12);
  const double intensity = (Flops(8) / Bytes(2)) / (FlopsPerSecond(6) / BytesPerSecond(3));
  CHECK(intensity == 2);  // (8 / 2) / (6 / 3)
}

}  // namespace forerun

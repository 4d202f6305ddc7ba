#pragma once

// Physical quantities: a double in SI base units (seconds, bytes, FLOP) whose dimension is part of
// its type, so that Seconds + Bytes does not compile. Values go in and out explicitly.

#include <compare>

namespace forerun {

/// Exponents of time (second), data (byte) and work (floating-point operation).
template <int Time, int Data, int Work>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double si) : si_(si) {}

  /// The value in SI base units of this dimension.
  [[nodiscard]] constexpr double value() const { return si_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator-() const { return Quantity(-si_); }
  constexpr Quantity& operator+=(Quantity o) { return si_ += o.si_, *this; }
  constexpr Quantity& operator-=(Quantity o) { return si_ -= o.si_, *this; }
  constexpr Quantity& operator*=(double f) { return si_ *= f, *this; }
  constexpr Quantity& operator/=(double f) { return si_ /= f, *this; }

 private:
  double si_ = 0;
};

template <int T, int D, int W>
constexpr Quantity<T, D, W> operator+(Quantity<T, D, W> a, Quantity<T, D, W> b) {
  return a += b;
}

template <int T, int D, int W>
constexpr Quantity<T, D, W> operator-(Quantity<T, D, W> a, Quantity<T, D, W> b) {
  return a -= b;
}

template <int T, int D, int W>
constexpr Quantity<T, D, W> operator*(Quantity<T, D, W> a, double f) {
  return a *= f;
}

template <int T, int D, int W>
constexpr Quantity<T, D, W> operator*(double f, Quantity<T, D, W> a) {
  return a *= f;
}

template <int T, int D, int W>
constexpr Quantity<T, D, W> operator/(Quantity<T, D, W> a, double f) {
  return a /= f;
}

namespace detail {
/// A dimensionless result is a plain number.
template <int T, int D, int W>
constexpr auto plain(double si) {
  if constexpr (T == 0 && D == 0 && W == 0) {
    return si;
  } else {
    return Quantity<T, D, W>(si);
  }
}
}  // namespace detail

template <int T1, int D1, int W1, int T2, int D2, int W2>
constexpr auto operator*(Quantity<T1, D1, W1> a, Quantity<T2, D2, W2> b) {
  return detail::plain<T1 + T2, D1 + D2, W1 + W2>(a.value() * b.value());
}

template <int T1, int D1, int W1, int T2, int D2, int W2>
constexpr auto operator/(Quantity<T1, D1, W1> a, Quantity<T2, D2, W2> b) {
  return detail::plain<T1 - T2, D1 - D2, W1 - W2>(a.value() / b.value());
}

using Seconds = Quantity<1, 0, 0>;
using Bytes = Quantity<0, 1, 0>;
using Flops = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<-1, 1, 0>;
using FlopsPerSecond = Quantity<-1, 0, 1>;

inline constexpr double kKiB = 1024.0;
inline constexpr double kMiB = 1024.0 * kKiB;
inline constexpr double kGiB = 1024.0 * kMiB;

}  // namespace forerun

#include "base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

namespace forerun {
namespace {

struct Prefix {
  std::string_view letter;
  int power;  // of 1000, or of 1024 with "i" behind it
};
constexpr std::array<Prefix, 9> kPrefixes{
    {{"", 0}, {"k", 1}, {"K", 1}, {"M", 2}, {"G", 3}, {"T", 4}, {"P", 5}, {"E", 6}, {"Z", 7}}};
constexpr std::array<Prefix, 4> kSmallPrefixes{{{"", 0}, {"m", -1}, {"u", -2}, {"n", -3}}};

double power_of(double base, int exponent) {
  double value = 1;
  for (int i = 0; i < std::abs(exponent); ++i)
    value *= base;
  return exponent < 0 ? 1 / value : value;
}

/// The factor of `unit` when it is a prefix followed by `base_unit`, else nothing.
std::optional<double> factor_of(std::string_view unit, std::string_view base_unit) {
  for (const Prefix& p : kPrefixes) {
    if (unit == std::string(p.letter) + std::string(base_unit)) return power_of(1000, p.power);
    const bool binary = p.power > 0 && p.letter != "k";
    if (binary && unit == std::string(p.letter) + "i" + std::string(base_unit)) {
      return power_of(1024, p.power);
    }
  }
  return std::nullopt;
}

struct NumberAndUnit {
  double number;
  std::string unit;
  std::string_view text;
};

/// The quantity in SI units; what no quotient of two quantities should meet is refused.
double in_si(const NumberAndUnit& q, double factor) {
  const double value = q.number * factor;
  if (value < 1e-30 || value > 1e30) {
    throw UnitError{fmt::format("found '{}', which is out of range", q.text)};
  }
  return value;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

NumberAndUnit split(std::string_view text, std::string_view example) {
  text = trimmed(text);
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) {
    throw UnitError{
        fmt::format("found '{}', a number with a unit is wanted, for instance {}", text, example)};
  }
  const std::string_view unit = trimmed({rest, text.data() + text.size()});
  if (unit.empty()) {
    throw UnitError{fmt::format("found '{}', a unit is wanted, for instance {}", text, example)};
  }
  if (number <= 0) throw UnitError{fmt::format("found '{}', must be above 0", text)};
  return {number, std::string(unit), text};
}

[[noreturn]] void unknown_unit(std::string_view text, std::string_view wants,
                               std::string_view example) {
  throw UnitError{fmt::format("found '{}', wants {}, for instance {}", text, wants, example)};
}

}  // namespace

Bytes parse_bytes(std::string_view text) {
  constexpr std::string_view example = "80 GiB or 80 GB";
  const NumberAndUnit q = split(text, example);
  if (const auto factor = factor_of(q.unit, "B")) return Bytes(in_si(q, *factor));
  if (const auto factor = factor_of(q.unit, "b")) {
    throw UnitError{fmt::format("found '{}', which is bits ({}); wants bytes, for instance {}",
                                text, text_of(Bytes(in_si(q, *factor) / 8)), example)};
  }
  unknown_unit(text, "bytes", example);
}

BytesPerSecond parse_bandwidth(std::string_view text) {
  constexpr std::string_view example = "400 Gb/s or 50 GB/s";
  const NumberAndUnit q = split(text, example);
  if (const auto factor = factor_of(q.unit, "B/s")) return BytesPerSecond(in_si(q, *factor));
  if (const auto factor = factor_of(q.unit, "b/s")) return BytesPerSecond(in_si(q, *factor) / 8);
  unknown_unit(text, "bits or bytes a second", example);
}

bool bandwidth_in_bytes(std::string_view text) {
  return trimmed(text).size() > 3 && trimmed(text).ends_with("B/s");
}

Seconds parse_seconds(std::string_view text) {
  constexpr std::string_view example = "2 us";
  const NumberAndUnit q = split(text, example);
  for (const Prefix& p : kSmallPrefixes) {
    if (q.unit == std::string(p.letter) + "s") return Seconds(in_si(q, power_of(1000, p.power)));
  }
  unknown_unit(text, "a time (s, ms, us, ns)", example);
}

FlopsPerSecond parse_flop_rate(std::string_view text) {
  constexpr std::string_view example = "989 TFLOP/s";
  const NumberAndUnit q = split(text, example);
  if (const auto factor = factor_of(q.unit, "FLOP/s")) return FlopsPerSecond(in_si(q, *factor));
  unknown_unit(text, "a rate of floating-point operations", example);
}

double parse_watts(std::string_view text) {
  const NumberAndUnit q = split(text, "700 W");
  if (const auto factor = factor_of(q.unit, "W")) return in_si(q, *factor);
  unknown_unit(text, "watts", "700 W");
}

double parse_hertz(std::string_view text) {
  const NumberAndUnit q = split(text, "1830 MHz");
  if (const auto factor = factor_of(q.unit, "Hz")) return in_si(q, *factor);
  unknown_unit(text, "a frequency", "1830 MHz");
}

namespace {
std::string scaled(double value, double base, std::string_view unit,
                   const std::array<std::string_view, 6>& prefixes) {
  std::size_t i = 0;
  while (std::abs(value) >= base && i + 1 < prefixes.size()) {
    value /= base;
    ++i;
  }
  return fmt::format("{:.4g} {}{}", value, prefixes[i], unit);
}
}  // namespace

std::string text_of(Bytes bytes) {
  return scaled(bytes.value(), 1024, "B", {"", "Ki", "Mi", "Gi", "Ti", "Pi"});
}

std::string text_of(BytesPerSecond rate) {
  return scaled(rate.value(), 1000, "B/s", {"", "k", "M", "G", "T", "P"});
}

std::string text_of(Seconds seconds) {
  const double s = seconds.value();
  if (s == 0) return "0 s";
  if (std::abs(s) < 1e-3) return fmt::format("{:.3g} us", s * 1e6);
  if (std::abs(s) < 1) return fmt::format("{:.4g} ms", s * 1e3);
  return fmt::format("{:.4g} s", s);
}

}  // namespace forerun

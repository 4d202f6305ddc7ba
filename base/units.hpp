#pragma once

// Text with a unit to a quantity and back, in one place. Bits and bytes, powers of 1000 and of 1024
// are never confused: "Gb/s" is 1e9 bit/s, "GB" 1e9 byte, "GiB" 2^30 byte. A bare number is an
// error for a field that has a dimension.

#include <string>
#include <string_view>

#include "base/quantity.hpp"

namespace forerun {

/// What went wrong when a text is no quantity: "a unit is wanted, for instance 80 GiB".
/// The caller adds place and key.
struct UnitError {
  std::string problem;
};

/// Each throws UnitError. Bytes refuses bits and rates; BytesPerSecond takes bits and bytes.
Bytes parse_bytes(std::string_view text);
BytesPerSecond parse_bandwidth(std::string_view text);
Seconds parse_seconds(std::string_view text);
FlopsPerSecond parse_flop_rate(std::string_view text);
/// Watts, the only quantity outside time, data and work that a description holds.
double parse_watts(std::string_view text);
/// Hertz.
double parse_hertz(std::string_view text);

/// True where a bandwidth was written in bytes ("400 GB/s") rather than bits.
bool bandwidth_in_bytes(std::string_view text);

/// Human-readable forms, with the unit that gives 1 to 1000.
std::string text_of(Bytes bytes);          // 1024-based: "77.0 GiB"
std::string text_of(BytesPerSecond rate);  // "50.0 GB/s"
std::string text_of(Seconds seconds);      // "2.46 s", "12.1 us"

}  // namespace forerun

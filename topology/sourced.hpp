#pragma once

// A value of the catalogue with where it comes from. Hardware files hold specifications and
// measurements; a fitted factor belongs in a profile, never here.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/enum_text.hpp"
#include "base/mapping_reader.hpp"

namespace forerun {

enum class ValueKind : std::uint8_t { kSpec, kMeasured, kEstimated, kUser };

constexpr auto enum_texts(ValueKind) {
  return std::array<std::string_view, 4>{"spec", "measured", "estimated", "user"};
}
FR_CHECK_ENUM(ValueKind, ValueKind::kUser);

template <class T>
struct Sourced {
  T value{};
  ValueKind kind = ValueKind::kUser;
  std::string source;
};

/// Reads {value, kind, source}; `convert` reads the value.
template <class Convert>
auto to_sourced(Convert convert) {
  return [convert](const Node& node, const std::string& key) {
    const MappingReader reader(node, key, {"value", "kind", "source"});
    Sourced<decltype(convert(node, key))> out;
    out.value = reader.required("value", convert);
    out.kind = reader.required("kind", to_enum<ValueKind>);
    out.source = reader.required("source", to_text_value);
    return out;
  };
}

}  // namespace forerun

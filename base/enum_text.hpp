#pragma once

// The text of an enum. Each enum E that users can write has a constexpr function
//   constexpr auto enum_texts(E) { return std::array<std::string_view, N>{...}; }
// found by argument-dependent lookup; entry i is the text of the enumerator with value i.
// FR_CHECK_ENUM(E, last) fails to compile when texts and enumerators do not match in number.

#include <cstddef>
#include <optional>
#include <string_view>

namespace forerun {

template <class E>
constexpr std::string_view to_text(E value) {
  return enum_texts(E{})[static_cast<std::size_t>(value)];
}

template <class E>
constexpr std::optional<E> from_text(std::string_view text) {
  constexpr auto texts = enum_texts(E{});
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i] == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace forerun

#define FR_CHECK_ENUM(E, last)                                                \
  static_assert(enum_texts(E{}).size() == static_cast<std::size_t>(last) + 1, \
                "every enumerator of " #E " has its text")

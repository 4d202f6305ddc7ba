#pragma once

// Typed indices: an Id<Tag> is an int that cannot be mixed with an index of something else.

#include <compare>
#include <cstdint>

namespace forerun {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::int32_t index) : index_(index) {}

  [[nodiscard]] constexpr std::int32_t index() const { return index_; }
  [[nodiscard]] constexpr bool valid() const { return index_ >= 0; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  std::int32_t index_ = -1;
};

}  // namespace forerun

#pragma once

// A chain of blocks as a small max-plus matrix: where no kernel is slowed by a collective, each
// slot's time after the chain is the maximum over slots of its time before plus a constant.

#include <array>
#include <cstdint>

#include "model/program.hpp"

namespace forerun {

class LinearMap {
 public:
  using Times = std::array<double, kSlots>;

  /// The identity.
  LinearMap();
  /// The map of one block.
  static LinearMap of(const Block& block);

  [[nodiscard]] Times operator()(const Times& before) const;
  /// First this map, then `next`.
  [[nodiscard]] LinearMap then(const LinearMap& next) const;
  /// This map `times` times, by repeated squaring.
  [[nodiscard]] LinearMap repeated(std::int64_t times) const;
  /// Weight from slot `from` to slot `to`; minus infinity where none.
  [[nodiscard]] double weight(int from, int to) const {
    return columns_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }

 private:
  // Padded so that a column is a whole number of vector registers.
  static constexpr std::size_t kPadded = 12;
  using Column = std::array<double, kPadded>;

  void change(std::size_t slot);

  std::array<Column, kSlots> columns_;  // columns_[from][to]
  // Slots that may not be simply handed on: in most maps two to five.
  std::array<std::uint8_t, kSlots> changing_{};
  std::uint8_t changes_ = 0;
};

}  // namespace forerun

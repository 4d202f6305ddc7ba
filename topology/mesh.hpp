#pragma once

// The device mesh: named axes with degrees, outermost first. Rank = sum of coordinate x stride, the
// innermost axis having stride 1; ranks fill nodes in order.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/enum_text.hpp"

namespace forerun {

enum class Axis : std::uint8_t { kPp, kDpReplicate, kDpShard, kCp, kTp };
inline constexpr int kAxes = 5;
constexpr auto enum_texts(Axis) {
  return std::array<std::string_view, kAxes>{"pp", "dp_replicate", "dp_shard", "cp", "tp"};
}
FR_CHECK_ENUM(Axis, Axis::kTp);

/// Outermost first; torchtitan's default mesh order.
using MeshOrder = std::array<Axis, kAxes>;
inline constexpr MeshOrder kDefaultMeshOrder{Axis::kPp, Axis::kDpReplicate, Axis::kDpShard,
                                             Axis::kCp, Axis::kTp};

/// One regular step of a group: `size` ranks `stride` apart.
struct AxisStep {
  std::int64_t size = 1;
  std::int64_t stride = 1;
};

/// The ranks base + sum i_k x stride_k of one communication group, by its steps, the smallest
/// stride first, adjacent steps merged. No list of ranks is made.
class RankGroup {
 public:
  void add(AxisStep step);
  [[nodiscard]] std::int64_t ranks() const;
  [[nodiscard]] int steps() const { return count_; }
  [[nodiscard]] AxisStep step(int i) const { return steps_[static_cast<std::size_t>(i)]; }
  /// The members of the group that holds `base`, at most `limit` of them.
  [[nodiscard]] std::vector<std::int64_t> members(std::int64_t base, std::int64_t limit) const;

 private:
  std::array<AxisStep, kAxes> steps_{};
  int count_ = 0;
};

class Mesh {
 public:
  Mesh(const std::array<int, kAxes>& degrees, const MeshOrder& order);

  [[nodiscard]] std::int64_t degree(Axis axis) const;
  [[nodiscard]] std::int64_t stride(Axis axis) const;
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t coordinate(std::int64_t rank, Axis axis) const;
  /// The group of rank 0 over these axes together (FSDP shards over dp_shard and cp).
  [[nodiscard]] RankGroup group(std::initializer_list<Axis> axes) const;
  [[nodiscard]] const MeshOrder& order() const { return order_; }
  bool operator==(const Mesh&) const = default;

 private:
  std::array<std::int64_t, kAxes> degree_{};
  std::array<std::int64_t, kAxes> stride_{};
  MeshOrder order_;
};

}  // namespace forerun

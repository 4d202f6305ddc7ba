#include "topology/mesh.hpp"

#include <algorithm>

#include "base/contract.hpp"

namespace forerun {

namespace {
std::size_t at(Axis axis) {
  return static_cast<std::size_t>(axis);
}
}  // namespace

void RankGroup::add(AxisStep step) {
  if (step.size == 1) return;
  FR_ASSERT(count_ < kAxes);
  const auto end = steps_.begin() + count_;
  const auto place =
      std::find_if(steps_.begin(), end, [&](const AxisStep& s) { return s.stride > step.stride; });
  std::move_backward(place, end, end + 1);
  *place = step;
  ++count_;
  for (int i = 0; i + 1 < count_;) {
    AxisStep& inner = steps_[static_cast<std::size_t>(i)];
    const AxisStep& outer = steps_[static_cast<std::size_t>(i + 1)];
    if (inner.size * inner.stride != outer.stride) {
      ++i;
      continue;
    }
    inner.size *= outer.size;
    std::move(steps_.begin() + i + 2, steps_.begin() + count_, steps_.begin() + i + 1);
    --count_;
  }
}

std::int64_t RankGroup::ranks() const {
  std::int64_t n = 1;
  for (int i = 0; i < count_; ++i)
    n *= step(i).size;
  return n;
}

std::vector<std::int64_t> RankGroup::members(std::int64_t base, std::int64_t limit) const {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < std::min(ranks(), limit); ++i) {
    std::int64_t rank = base, rest = i;
    for (int k = 0; k < count_; ++k) {
      rank += rest % step(k).size * step(k).stride;
      rest /= step(k).size;
    }
    out.push_back(rank);
  }
  return out;
}

Mesh::Mesh(const std::array<int, kAxes>& degrees, const MeshOrder& order) : order_(order) {
  std::int64_t stride = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    degree_[at(*axis)] = degrees[at(*axis)];
    stride_[at(*axis)] = stride;
    stride *= degrees[at(*axis)];
  }
}

std::int64_t Mesh::degree(Axis axis) const {
  return degree_[at(axis)];
}
std::int64_t Mesh::stride(Axis axis) const {
  return stride_[at(axis)];
}

std::int64_t Mesh::size() const {
  std::int64_t n = 1;
  for (const std::int64_t degree : degree_)
    n *= degree;
  return n;
}

std::int64_t Mesh::coordinate(std::int64_t rank, Axis axis) const {
  return rank / stride(axis) % degree(axis);
}

RankGroup Mesh::group(std::initializer_list<Axis> axes) const {
  RankGroup group;
  for (const Axis axis : axes)
    group.add({degree(axis), stride(axis)});
  return group;
}

}  // namespace forerun

#include "topology/mesh.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

namespace forerun {
namespace {

using Coordinates = std::array<std::int64_t, kAxes>;  // by Axis
using Degrees = std::array<int, kAxes>;

std::size_t at(Axis axis) {
  return static_cast<std::size_t>(axis);
}

/// Every rank's coordinates by counting: the innermost axis turns fastest.
std::vector<Coordinates> counted(const Degrees& degrees, const MeshOrder& order) {
  std::int64_t size = 1;
  for (const int degree : degrees)
    size *= degree;
  std::vector<Coordinates> out;
  Coordinates now{};
  for (std::int64_t rank = 0; rank < size; ++rank) {
    out.push_back(now);
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      if (++now[at(*axis)] < degrees[at(*axis)]) break;
      now[at(*axis)] = 0;
    }
  }
  return out;
}

/// Ranks that agree in every axis outside `inside`, by what they agree in.
std::map<Coordinates, std::vector<std::int64_t>> counted_groups(
    const std::vector<Coordinates>& ranks, const std::set<Axis>& inside) {
  std::map<Coordinates, std::vector<std::int64_t>> groups;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    Coordinates outside = ranks[rank];
    for (const Axis axis : inside)
      outside[at(axis)] = 0;
    groups[outside].push_back(static_cast<std::int64_t>(rank));
  }
  return groups;
}

RankGroup group_over(const Mesh& mesh, const std::set<Axis>& axes) {
  RankGroup group;
  for (const Axis axis : axes)
    group.add({mesh.degree(axis), mesh.stride(axis)});
  return group;
}

std::set<Axis> subset(unsigned bits) {
  std::set<Axis> axes;
  for (unsigned i = 0; i < kAxes; ++i) {
    if ((bits >> i & 1) != 0) axes.insert(static_cast<Axis>(i));
  }
  return axes;
}

template <class Visit>
void each_order(Visit visit) {
  MeshOrder order{Axis::kPp, Axis::kDpReplicate, Axis::kDpShard, Axis::kCp, Axis::kTp};
  do {
    visit(order);
  } while (std::next_permutation(order.begin(), order.end()));
}

constexpr std::array<Degrees, 4> kShapes{Degrees{2, 1, 3, 2, 2}, Degrees{3, 2, 2, 1, 2},
                                         Degrees{1, 1, 8, 1, 1}, Degrees{2, 3, 1, 2, 4}};

}  // namespace

TEST_CASE("the default order is torchtitan's, with tp innermost") {
  const Mesh mesh({4, 1, 16, 2, 8}, kDefaultMeshOrder);
  CHECK(mesh.size() == 1024);
  CHECK(mesh.stride(Axis::kTp) == 1);
  CHECK(mesh.stride(Axis::kCp) == 8);
  CHECK(mesh.stride(Axis::kDpShard) == 16);
  CHECK(mesh.stride(Axis::kPp) == 256);  // 8 x 2 x 16
  CHECK(mesh.coordinate(1023, Axis::kPp) == 3);
  CHECK(mesh.coordinate(300, Axis::kTp) == 4);  // 300 = 256 + 2 x 16 + 1 x 8 + 4
  CHECK(mesh.coordinate(300, Axis::kCp) == 1);
  CHECK(mesh.coordinate(300, Axis::kDpShard) == 2);
}

TEST_CASE("ranks have the coordinates that counting gives, in any order of axes") {
  for (const Degrees& degrees : kShapes) {
    each_order([&](const MeshOrder& order) {
      const Mesh mesh(degrees, order);
      const std::vector<Coordinates> ranks = counted(degrees, order);
      REQUIRE(mesh.size() == static_cast<std::int64_t>(ranks.size()));
      bool same = true;
      for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
        for (int i = 0; i < kAxes; ++i) {
          const auto axis = static_cast<Axis>(i);
          same &= mesh.coordinate(rank, axis) == ranks[static_cast<std::size_t>(rank)][at(axis)];
        }
      }
      CHECK(same);
    });
  }
}

TEST_CASE("a group holds the ranks that agree in the other axes, for any axes and any order") {
  for (const Degrees& degrees : kShapes) {
    each_order([&](const MeshOrder& order) {
      const Mesh mesh(degrees, order);
      const std::vector<Coordinates> ranks = counted(degrees, order);
      for (unsigned bits = 0; bits < 32; ++bits) {
        const RankGroup group = group_over(mesh, subset(bits));
        bool same = true;
        for (const auto& [outside, members] : counted_groups(ranks, subset(bits))) {
          std::vector<std::int64_t> found = group.members(members.front(), mesh.size());
          std::sort(found.begin(), found.end());
          same &= found == members && group.ranks() == static_cast<std::int64_t>(members.size());
        }
        CHECK(same);
      }
    });
  }
}

TEST_CASE("adjacent axes make one step, whichever is named first") {
  const Mesh mesh({2, 1, 4, 2, 8}, kDefaultMeshOrder);
  for (const RankGroup& group :
       {mesh.group({Axis::kDpShard, Axis::kCp}), mesh.group({Axis::kCp, Axis::kDpShard})}) {
    CHECK(group.steps() == 1);
    CHECK(group.step(0).size == 8);    // 4 x 2
    CHECK(group.step(0).stride == 8);  // that of cp
  }
  const RankGroup apart = mesh.group({Axis::kPp, Axis::kCp});
  CHECK(apart.steps() == 2);
  CHECK(apart.step(0).stride == 8);
  CHECK(apart.step(1).stride == 64);
  CHECK(mesh.group({}).ranks() == 1);
  CHECK(mesh.group({Axis::kDpReplicate}).steps() == 0);  // of degree 1
}

TEST_CASE("no more members are listed than asked for") {
  const Mesh mesh({1, 1, 1 << 20, 1, 8}, kDefaultMeshOrder);
  const RankGroup group = mesh.group({Axis::kDpShard});
  CHECK(group.ranks() == 1 << 20);
  CHECK(group.members(3, 4) == std::vector<std::int64_t>{3, 11, 19, 27});
}

}  // namespace forerun

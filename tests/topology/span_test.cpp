// Spans are arithmetic; here they are compared with lists of ranks and with routes through the
// graph.

#include "topology/span.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "topology/graph.hpp"

namespace forerun {
namespace {

using Degrees = std::array<int, kAxes>;
using Ranks = std::vector<std::int64_t>;

ClusterSpec shape(std::int64_t gpus, std::int64_t node, std::int64_t rack) {
  ClusterSpec c;
  c.oversubscription.value = 1;
  c.gpus_per_node.value = c.nics_per_node.value = node;
  c.nodes_per_rack.value = rack;
  c.gpus = gpus;
  c.nodes = (gpus + node - 1) / node;
  return c;
}

/// Every group over `axes`, as the ranks that share their other coordinates.
std::vector<Ranks> groups_of(const Mesh& mesh, const std::set<Axis>& axes) {
  std::map<Ranks, Ranks> groups;
  for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
    Ranks outside;
    for (int i = 0; i < kAxes; ++i) {
      const auto axis = static_cast<Axis>(i);
      if (axes.count(axis) == 0) outside.push_back(mesh.coordinate(rank, axis));
    }
    groups[outside].push_back(rank);
  }
  std::vector<Ranks> out;
  for (auto& [outside, members] : groups)
    out.push_back(std::move(members));
  return out;
}

std::int64_t boxes(const Ranks& ranks, std::int64_t box) {
  std::set<std::int64_t> touched;
  for (const std::int64_t rank : ranks)
    touched.insert(rank / box);
  return static_cast<std::int64_t>(touched.size());
}

std::int64_t fullest(const Ranks& ranks, std::int64_t box) {
  std::map<std::int64_t, std::int64_t> count;
  for (const std::int64_t rank : ranks)
    ++count[rank / box];
  std::int64_t most = 0;
  for (const auto& [index, n] : count)
    most = std::max(most, n);
  return most;
}

/// The span by counting: of all groups the one that crosses most.
Span counted(const Mesh& mesh, const std::set<Axis>& axes, const ClusterSpec& c) {
  const std::int64_t node = c.gpus_per_node.value, rack = node * c.nodes_per_rack.value;
  Span span;
  span.ranks_per_node = 0;
  for (const Ranks& group : groups_of(mesh, axes)) {
    span.ranks = static_cast<std::int64_t>(group.size());
    span.nodes = std::max(span.nodes, boxes(group, node));
    span.racks = std::max(span.racks, boxes(group, rack));
    span.ranks_per_node = std::max(span.ranks_per_node, fullest(group, node));
  }
  span.tier = span.ranks == 1   ? Tier::kGpu
              : span.nodes == 1 ? Tier::kNode
              : span.racks == 1 ? Tier::kRack
                                : Tier::kCluster;
  return span;
}

RankGroup group_over(const Mesh& mesh, const std::set<Axis>& axes) {
  RankGroup group;
  for (const Axis axis : axes)
    group.add({mesh.degree(axis), mesh.stride(axis)});
  return group;
}

const std::vector<std::set<Axis>> kGroups{
    {Axis::kTp},
    {Axis::kCp},
    {Axis::kDpShard},
    {Axis::kDpReplicate},
    {Axis::kPp},
    {Axis::kDpShard, Axis::kCp},
    {Axis::kPp, Axis::kDpReplicate, Axis::kDpShard, Axis::kCp, Axis::kTp}};

/// Orders that put each axis innermost and outermost once.
std::vector<MeshOrder> some_orders() {
  std::vector<MeshOrder> orders;
  MeshOrder order = kDefaultMeshOrder;
  for (int i = 0; i < kAxes; ++i) {
    orders.push_back(order);
    std::rotate(order.begin(), order.begin() + 1, order.end());
  }
  orders.push_back({Axis::kTp, Axis::kCp, Axis::kDpShard, Axis::kDpReplicate, Axis::kPp});
  orders.push_back({Axis::kDpShard, Axis::kTp, Axis::kPp, Axis::kCp, Axis::kDpReplicate});
  return orders;
}

template <class Visit>
void each_mesh(std::int64_t most, Visit visit) {
  for (const MeshOrder& order : some_orders()) {
    for (const int pp : {1, 2, 3, 4}) {
      for (const int shard : {1, 2, 3, 6}) {
        for (const int cp : {1, 2}) {
          for (const int tp : {1, 2, 3, 4}) {
            const Mesh mesh(Degrees{pp, 1, shard, cp, tp}, order);
            if (mesh.size() <= most) visit(mesh);
          }
        }
      }
    }
  }
}

bool whole_nodes(std::int64_t gpus, std::int64_t node) {
  return gpus <= node || gpus % node == 0;
}

}  // namespace

TEST_CASE("a span is what counting gives, also where groups do not divide nodes or racks") {
  each_mesh(96, [](const Mesh& mesh) {
    for (const std::int64_t node : {2, 4, 6, 8}) {
      if (!whole_nodes(mesh.size(), node)) continue;
      for (const std::int64_t rack : {1, 2, 3}) {
        const ClusterSpec c = shape(mesh.size(), node, rack);
        for (const std::set<Axis>& axes : kGroups) {
          const RankGroup group = group_over(mesh, axes);
          if (group.steps() > 1) continue;
          CHECK(span_of(group, c) == counted(mesh, axes, c));
        }
      }
    }
  });
}

TEST_CASE("a group of several steps is exact for powers of two and never too small") {
  each_mesh(96, [](const Mesh& mesh) {
    const bool even = (mesh.size() & (mesh.size() - 1)) == 0;
    for (const std::int64_t node : {4, 6, 8}) {
      if (!whole_nodes(mesh.size(), node)) continue;
      const ClusterSpec c = shape(mesh.size(), node, 2);
      const std::set<Axis> axes{Axis::kDpShard, Axis::kCp};
      const Span span = span_of(mesh, {Axis::kDpShard, Axis::kCp}, c),
                 exact = counted(mesh, axes, c);
      if (even && node != 6) {
        CHECK(span == exact);
      } else {
        CHECK(span.nodes >= exact.nodes);
        CHECK(span.racks >= exact.racks);
        CHECK(span.ranks_per_node >= exact.ranks_per_node);
      }
    }
  });
}

TEST_CASE("the tier of a group is the outermost link on routes between its members") {
  for (const NetworkLayout layout : {NetworkLayout::kRack, NetworkLayout::kRail}) {
    for (std::int64_t nodes = 1; nodes <= 6; ++nodes) {
      for (const std::int64_t node : {2, 4}) {
        for (const std::int64_t rack : {1, 2, 3}) {
          ClusterSpec c = shape(nodes * node, node, rack);
          c.layout.value = layout;
          const Topology topology = build_topology(c, nodes);
          std::vector<std::vector<Tier>> tier(static_cast<std::size_t>(c.gpus));
          for (std::int64_t a = 0; a < c.gpus; ++a) {
            for (std::int64_t b = 0; b < c.gpus; ++b) {
              tier[static_cast<std::size_t>(a)].push_back(route_between(topology, a, b).tier);
            }
          }
          each_mesh(c.gpus, [&](const Mesh& mesh) {
            if (mesh.size() != c.gpus) return;
            for (const std::set<Axis>& axes : kGroups) {
              Tier crossed = Tier::kGpu;
              for (const Ranks& group : groups_of(mesh, axes)) {
                for (const std::int64_t other : group) {
                  crossed = std::max(
                      crossed,
                      tier[static_cast<std::size_t>(group[0])][static_cast<std::size_t>(other)]);
                }
              }
              const RankGroup steps = group_over(mesh, axes);
              if (steps.steps() <= 1) CHECK(span_of(steps, c).tier == crossed);
            }
          });
        }
      }
    }
  }
}

TEST_CASE("the way to the next rank of an axis is the worst over all ranks") {
  each_mesh(96, [](const Mesh& mesh) {
    for (const std::int64_t node : {4, 8}) {
      if (!whole_nodes(mesh.size(), node)) continue;
      const ClusterSpec c = shape(mesh.size(), node, 2);
      for (const Axis axis : {Axis::kPp, Axis::kCp, Axis::kTp}) {
        Tier worst = Tier::kGpu;
        for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
          if (mesh.coordinate(rank, axis) + 1 == mesh.degree(axis)) continue;
          const Ranks pair{rank, rank + mesh.stride(axis)};
          const bool same_node = boxes(pair, node) == 1, same_rack = boxes(pair, 2 * node) == 1;
          worst = std::max(worst, same_node   ? Tier::kNode
                                  : same_rack ? Tier::kRack
                                              : Tier::kCluster);
        }
        CHECK(neighbour_tier(mesh, axis, c) == worst);
      }
    }
  });
}

TEST_CASE("six GPUs of a node are one node and 24 nodes of a pod are one pod") {
  const Span six =
      span_of(Mesh({1, 1, 6, 1, 1}, kDefaultMeshOrder), {Axis::kDpShard}, shape(6, 8, 1));
  CHECK(six == Span{.ranks = 6, .nodes = 1, .ranks_per_node = 6, .racks = 1, .tier = Tier::kNode});
  const Span pod =
      span_of(Mesh({1, 1, 192, 1, 1}, kDefaultMeshOrder), {Axis::kDpShard}, shape(192, 8, 32));
  CHECK(pod ==
        Span{.ranks = 192, .nodes = 24, .ranks_per_node = 8, .racks = 1, .tier = Tier::kRack});
}

TEST_CASE("four stages of four ranks cross nodes of eight between the second and the third") {
  const Mesh mesh({4, 1, 1, 1, 4}, kDefaultMeshOrder);
  CHECK(neighbour_tier(mesh, Axis::kPp, shape(16, 8, 1)) == Tier::kCluster);
  CHECK(neighbour_tier(mesh, Axis::kPp, shape(16, 8, 2)) == Tier::kRack);
  CHECK(neighbour_tier(mesh, Axis::kPp, shape(16, 16, 1)) == Tier::kNode);
  CHECK(neighbour_tier(mesh, Axis::kTp, shape(16, 8, 1)) == Tier::kNode);
}

}  // namespace forerun

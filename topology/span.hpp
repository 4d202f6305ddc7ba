#pragma once

// What a communication group crosses, answered from the description by arithmetic: the number of
// nodes and racks it touches and how many of its ranks share a node. Where groups of one axis lie
// differently (degrees that do not divide a node) the one that crosses most counts. A group of
// several steps (axes that are not adjacent) may then be said to cross more than it does, never
// less.

#include <cstdint>

#include "topology/cluster.hpp"
#include "topology/mesh.hpp"

namespace forerun {

struct Span {
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;
  std::int64_t ranks_per_node = 1;  ///< in the fullest node
  std::int64_t racks = 1;           ///< racks, or pods of a rail-optimised network
  Tier tier = Tier::kGpu;           ///< the outermost tier crossed

  bool operator==(const Span&) const = default;
};

/// The cluster's GPUs are the world that groups of this kind fill.
Span span_of(const RankGroup& group, const ClusterSpec& cluster);

/// Span over some axes of a mesh; its ranks are the world.
Span span_of(const Mesh& mesh, std::initializer_list<Axis> axes, const ClusterSpec& cluster);

/// The point-to-point path from a rank to the next one along `axis`, at its worst.
Tier neighbour_tier(const Mesh& mesh, Axis axis, const ClusterSpec& cluster);

}  // namespace forerun

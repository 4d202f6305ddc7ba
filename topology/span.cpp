#include "topology/span.hpp"

#include <algorithm>
#include <numeric>

namespace forerun {
namespace {

struct Count {
  std::int64_t cells = 1;    // boxes of `box` consecutive ranks that are touched, at worst
  std::int64_t fullest = 1;  // ranks in the fullest box
};

/// One step of `size` ranks `stride` apart over boxes of `box` consecutive ranks. Groups begin at
/// any offset below the stride plus multiples of size x stride.
Count boxes_of(AxisStep step, std::int64_t box) {
  if (step.stride >= box) return {step.size, 1};
  const std::int64_t extent = (step.size - 1) * step.stride;
  const std::int64_t period = std::gcd(step.size * step.stride, box);
  Count count;
  count.fullest = std::min(step.size, (box + step.stride - 1) / step.stride);
  // The last reachable residue of a beginning is the worst: residues are j + k x period, j < stride.
  for (std::int64_t residue = 0; residue < box; residue += period) {
    const std::int64_t last = std::min(residue + step.stride - 1, box - 1);
    count.cells = std::max(count.cells, (last + extent) / box + 1);
  }
  return count;
}

Count boxes_of(const RankGroup& group, std::int64_t box) {
  Count total;
  for (int i = 0; i < group.steps(); ++i) {
    const Count count = boxes_of(group.step(i), box);
    total.cells *= count.cells;
    total.fullest *= count.fullest;
  }
  total.fullest = std::min(total.fullest, box);
  return total;
}

}  // namespace

Span span_of(const RankGroup& group, const ClusterSpec& cluster) {
  Span span;
  span.ranks = group.ranks();
  if (span.ranks == 1) return span;
  const std::int64_t node = cluster.gpus_per_node.value;
  const Count nodes = boxes_of(group, node);
  span.nodes = std::min(nodes.cells, span.ranks);
  span.ranks_per_node = nodes.fullest;
  span.racks = std::min(boxes_of(group, node * cluster.nodes_per_rack.value).cells, span.nodes);
  span.tier = span.nodes == 1 ? Tier::kNode : span.racks == 1 ? Tier::kRack : Tier::kCluster;
  return span;
}

Span span_of(const Mesh& mesh, std::initializer_list<Axis> axes, const ClusterSpec& cluster) {
  return span_of(mesh.group(axes), cluster);
}

Tier neighbour_tier(const Mesh& mesh, Axis axis, const ClusterSpec& cluster) {
  RankGroup pair;
  pair.add({std::min<std::int64_t>(mesh.degree(axis), 2), mesh.stride(axis)});
  return span_of(pair, cluster).tier;
}

}  // namespace forerun

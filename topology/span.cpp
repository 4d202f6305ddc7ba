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
/// any offset below the stride plus multiples of size x stride, as far as the world has ranks.
Count boxes_of(AxisStep step, std::int64_t box, std::int64_t world) {
  if (step.stride >= box) return {step.size, 1};
  const std::int64_t block = step.size * step.stride, extent = block - step.stride;
  Count count;
  count.fullest = std::min(step.size, (box + step.stride - 1) / step.stride);
  const std::int64_t most = (box - 1 + extent) / box + 1;
  // Where a block begins in its box repeats after this many blocks.
  const std::int64_t blocks = std::min(world / block, box / std::gcd(block, box));
  for (std::int64_t k = 0; k < std::max<std::int64_t>(blocks, 1) && count.cells < most; ++k) {
    // Of the groups that begin in this block the last one in its first box reaches furthest.
    const std::int64_t last = std::min(k * block % box + step.stride - 1, box - 1);
    count.cells = std::max(count.cells, (last + extent) / box + 1);
  }
  return count;
}

Count boxes_of(const RankGroup& group, std::int64_t box, std::int64_t world) {
  Count total;
  for (int i = 0; i < group.steps(); ++i) {
    const Count count = boxes_of(group.step(i), box, world);
    total.cells *= count.cells;
    total.fullest *= count.fullest;
  }
  total.cells = std::min(total.cells, std::max<std::int64_t>(1, (world + box - 1) / box));
  total.fullest = std::min(total.fullest, box);
  return total;
}

Span span_in(const RankGroup& group, const ClusterSpec& cluster, std::int64_t world) {
  Span span;
  span.ranks = group.ranks();
  if (span.ranks == 1) return span;
  const std::int64_t node = cluster.gpus_per_node.value;
  const Count nodes = boxes_of(group, node, world);
  span.nodes = std::min(nodes.cells, span.ranks);
  span.ranks_per_node = nodes.fullest;
  const std::int64_t rack = node * cluster.nodes_per_rack.value;
  span.racks = std::min(boxes_of(group, rack, world).cells, span.nodes);
  span.tier = span.nodes == 1 ? Tier::kNode : span.racks == 1 ? Tier::kRack : Tier::kCluster;
  return span;
}

}  // namespace

Span span_of(const RankGroup& group, const ClusterSpec& cluster) {
  return span_in(group, cluster, cluster.gpus);
}

Span span_of(const Mesh& mesh, std::initializer_list<Axis> axes, const ClusterSpec& cluster) {
  return span_in(mesh.group(axes), cluster, mesh.size());
}

/// Consecutive members of a group are `stride` apart, so some pair of neighbours crosses a border
/// exactly where the group does.
Tier neighbour_tier(const Mesh& mesh, Axis axis, const ClusterSpec& cluster) {
  return span_of(mesh, {axis}, cluster).tier;
}

}  // namespace forerun

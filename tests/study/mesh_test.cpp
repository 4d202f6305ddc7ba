// Groups and links of a mesh against its ranks one by one.

#include "study/mesh.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/base/expect.hpp"
#include "tests/study/runs.hpp"

using namespace forerun;

namespace {

const std::vector<MeshOrder> kOrders{
    kDefaultMeshOrder,
    {Axis::kTp, Axis::kCp, Axis::kDpShard, Axis::kDpReplicate, Axis::kPp},
    {Axis::kDpShard, Axis::kPp, Axis::kTp, Axis::kDpReplicate, Axis::kCp},
    {Axis::kCp, Axis::kTp, Axis::kPp, Axis::kDpShard, Axis::kDpReplicate},
};

/// 64 GPUs: 8 nodes of 8 GPUs, 4 racks of 2 nodes.
Job job_with(const MeshOrder& order) {
  Job job = test::job_of(
      "cluster: {name: grand-teton-h100-95gb, gpus: 64}\nmodel: llama3-8b\n"
      "training: {sequence_length: 8192, micro_batch: 1, global_batch: 64}\n"
      "parallelism: {dp_shard: 4, dp_replicate: 2, cp: 2, tp: 2, pp: 2}\n"
      "software: torchtitan-2024-12\n");
  job.plan.mesh_order = order;
  return job;
}

std::vector<Axis> axes_of(const MeshGroup& group) {
  for (int a = 0; a < kAxes; ++a) {
    if (group.name == to_text(static_cast<Axis>(a))) return {static_cast<Axis>(a)};
  }
  REQUIRE(group.name.starts_with("dp_shard x cp"));
  return {Axis::kDpShard, Axis::kCp};
}

/// The ranks whose other coordinates are those of `rank`, by asking each.
std::vector<std::int64_t> peers(const Mesh& mesh, const std::vector<Axis>& axes,
                                std::int64_t rank) {
  std::vector<std::int64_t> out;
  for (std::int64_t other = 0; other < mesh.size(); ++other) {
    bool same = true;
    for (const Axis axis : mesh.order()) {
      if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
      same = same && mesh.coordinate(other, axis) == mesh.coordinate(rank, axis);
    }
    if (same) out.push_back(other);
  }
  return out;
}

std::size_t distinct(const std::vector<std::int64_t>& ranks, std::int64_t width) {
  std::set<std::int64_t> parts;
  for (const std::int64_t r : ranks)
    parts.insert(r / width);
  return parts.size();
}

}  // namespace

TEST_CASE("the groups of each kind cut the ranks into equal parts, in any mesh order") {
  for (const MeshOrder& order : kOrders) {
    const Job job = job_with(order);
    const Mesh mesh = job.plan.mesh();
    const MeshResult r = describe_mesh(job);
    CHECK(r.gpus == 64);
    REQUIRE(r.groups.size() == 6);  // five axes, and parameters over dp_shard x cp
    for (const MeshGroup& g : r.groups) {
      CAPTURE(g.name);
      const std::vector<Axis> axes = axes_of(g);
      std::set<std::vector<std::int64_t>> parts;
      std::size_t ranks = 0;
      for (std::int64_t rank = 0; rank < 64; ++rank)
        parts.insert(peers(mesh, axes, rank));
      for (const std::vector<std::int64_t>& part : parts) {
        CHECK(static_cast<std::int64_t>(part.size()) == g.span.ranks);
        ranks += part.size();
      }
      CHECK(ranks == 64);
      CHECK(static_cast<std::int64_t>(parts.size()) == g.groups);
      std::vector<std::int64_t> members = g.members;
      std::sort(members.begin(), members.end());
      CHECK(members == peers(mesh, axes, 0));
    }
  }
}

TEST_CASE("the slowest link is the outermost that a group's ranks cross") {
  for (const MeshOrder& order : kOrders) {
    const Job job = job_with(order);
    const ClusterSpec& cluster = job.scenario.cluster;
    for (const MeshGroup& g : describe_mesh(job).groups) {
      CAPTURE(g.name);
      const std::vector<std::int64_t> first = peers(job.plan.mesh(), axes_of(g), 0);
      const std::size_t nodes = distinct(first, 8), racks = distinct(first, 16);
      CHECK(static_cast<std::size_t>(g.span.nodes) == nodes);
      CHECK(static_cast<std::size_t>(g.span.racks) == racks);
      CHECK(g.span.tier == (racks > 1 ? Tier::kCluster : nodes > 1 ? Tier::kRack : Tier::kNode));
      CHECK(g.bandwidth == cluster.bandwidth_at(g.span.tier));
    }
  }
}

TEST_CASE("inside a node a GPU has NVLink's bandwidth, outside its NIC's") {
  const MeshResult r = describe_mesh(job_with(kDefaultMeshOrder));
  const auto bandwidth = [&](const std::string& name) {
    for (const MeshGroup& g : r.groups) {
      if (g.name == name) return g.bandwidth.value();
    }
    return 0.0;
  };
  CHECK(bandwidth("tp") == 450e9);  // NVLink 4: 18 links of 25 GB/s a direction
  CHECK(bandwidth("pp") == 50e9);   // 400 Gb/s a GPU
}

TEST_CASE("the order is told with its degrees, and axes of one rank form no group") {
  const MeshResult r = describe_mesh(test::sixteen("parallelism: {dp_shard: 2, tp: 8}\n"));
  CHECK(r.order ==
        std::vector<std::string>{"pp 1", "dp_replicate 1", "dp_shard 2", "cp 1", "tp 8"});
  REQUIRE(r.groups.size() == 2);
  CHECK(r.groups[0].name == "dp_shard");
  CHECK(r.groups[0].members == std::vector<std::int64_t>{0, 8});
  CHECK(r.groups[1].name == "tp");
  CHECK(r.groups[1].members == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

#include "topology/graph.hpp"

#include <doctest/doctest.h>

#include <map>

#include "tests/support/plans.hpp"
#include "topology/catalog.hpp"

namespace forerun {
namespace {

ClusterSpec cluster(const std::string& name) {
  return load_cluster(test::source_data(), name, {}, "cluster");
}

std::map<DeviceKind, int> kinds(const Topology& topology) {
  std::map<DeviceKind, int> count;
  const auto [begin, end] = vertices(topology.graph);
  for (auto v = begin; v != end; ++v)
    ++count[topology.graph[*v].kind];
  return count;
}

}  // namespace

TEST_CASE("a node alone has GPUs, NICs and a switch and no network") {
  const Topology t = build_topology(cluster("dgx-h100"), 1);
  CHECK(kinds(t) == std::map<DeviceKind, int>{
                        {DeviceKind::kGpu, 8}, {DeviceKind::kNic, 8}, {DeviceKind::kNvSwitch, 1}});
  const Route route = route_between(t, 0, 7);
  CHECK(route.tier == Tier::kNode);
  CHECK(route.hops == 2);  // GPU, NVSwitch, GPU
  CHECK(route.bandwidth.value() == 450e9);
}

TEST_CASE("two hosts share a switch and a spine joins the racks") {
  const Topology t = build_topology(cluster("grand-teton-h100-95gb"), 5);
  std::map<DeviceKind, int> count = kinds(t);
  CHECK(count[DeviceKind::kGpu] == 40);
  CHECK(count[DeviceKind::kLeafSwitch] == 3);  // of 2, 2 and 1 hosts
  CHECK(count[DeviceKind::kSpineSwitch] == 1);
  CHECK(route_between(t, 0, 15).tier == Tier::kRack);
  CHECK(route_between(t, 0, 15).hops == 4);  // GPU, NIC, switch, NIC, GPU
  CHECK(route_between(t, 0, 16).tier == Tier::kCluster);
  CHECK(route_between(t, 0, 16).hops == 6);  // over two switches and the spine
  CHECK(route_between(t, 39, 32).tier == Tier::kNode);
}

TEST_CASE("rails join equal NICs of a pod on one leaf") {
  const Topology t = build_topology(cluster("dgx-h100"), 33);
  std::map<DeviceKind, int> count = kinds(t);
  CHECK(count[DeviceKind::kLeafSwitch] == 16);  // 8 rails in each of two pods
  CHECK(route_between(t, 0, 8).hops == 4);      // rail 0 of nodes 0 and 1
  CHECK(route_between(t, 0, 8).tier == Tier::kRack);
  CHECK(route_between(t, 5, 31 * 8 + 5).tier == Tier::kRack);  // the last node of the pod
  CHECK(route_between(t, 5, 32 * 8 + 5).tier == Tier::kCluster);
  CHECK(route_between(t, 0, 9).hops == 6);  // another rail: through a GPU's node or the spine
}

TEST_CASE("the narrowest link of a route is its bandwidth") {
  ClusterSpec c = cluster("grand-teton-h100-95gb");
  c.nics_per_node.value = 2;
  const Topology t = build_topology(c, 4);
  CHECK(kinds(t)[DeviceKind::kNic] == 8);
  CHECK(route_between(t, 0, 8).bandwidth.value() == 12.5e9);  // 2 x 50 GB/s over 8 GPUs
  CHECK(route_between(t, 0, 3).bandwidth.value() == 450e9);
  CHECK(route_between(t, 5, 5).hops == 0);
  CHECK(route_between(t, 5, 5).tier == Tier::kGpu);
}

TEST_CASE("the uplink of a rack is narrower by the oversubscription") {
  ClusterSpec c = cluster("grand-teton-h100-95gb");
  c.oversubscription.value = 4;
  const Topology t = build_topology(c, 4);
  const auto [begin, end] = edges(t.graph);
  int uplinks = 0;
  for (auto e = begin; e != end; ++e) {
    if (t.graph[*e].tier != Tier::kCluster) continue;
    ++uplinks;
    CHECK(t.graph[*e].bandwidth.value() == 200e9);  // 2 hosts x 8 NICs x 50 GB/s over 4
  }
  CHECK(uplinks == 2);
}

TEST_CASE("a route is as long and as wide in both directions") {
  for (const char* name : {"dgx-h100", "grand-teton-h100-95gb"}) {
    const Topology t = build_topology(cluster(name), 3);
    for (std::int64_t a = 0; a < 24; a += 5) {
      for (std::int64_t b = 0; b < 24; ++b) {
        const Route there = route_between(t, a, b), back = route_between(t, b, a);
        CHECK(there.hops == back.hops);
        CHECK(there.bandwidth == back.bandwidth);
      }
    }
  }
}

}  // namespace forerun

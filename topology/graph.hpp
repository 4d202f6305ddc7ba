#pragma once

// The cluster as a graph of devices, switches and links, built from the description on demand: for
// the event engine's network, for routes, and to check what spans answer by arithmetic.

#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <vector>

#include "base/quantity.hpp"
#include "topology/cluster.hpp"

namespace forerun {

enum class DeviceKind : std::uint8_t { kGpu, kNic, kNvSwitch, kLeafSwitch, kSpineSwitch };

struct Device {
  DeviceKind kind = DeviceKind::kGpu;
  std::int64_t index = 0;  ///< rank of a GPU, else the number among its kind
};

struct Link {
  BytesPerSecond bandwidth;  ///< one direction
  Tier tier = Tier::kNode;
};

using TopologyGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, Device, Link>;
using DeviceVertex = boost::graph_traits<TopologyGraph>::vertex_descriptor;

struct Topology {
  TopologyGraph graph;
  std::vector<DeviceVertex> gpus;  ///< by rank
};

/// Builds nodes [0, nodes) of the cluster with their switches.
Topology build_topology(const ClusterSpec& cluster, std::int64_t nodes);

/// The outermost tier and the narrowest link on a shortest path between two GPUs.
struct Route {
  Tier tier = Tier::kGpu;
  BytesPerSecond bandwidth;
  int hops = 0;
};
Route route_between(const Topology& topology, std::int64_t from, std::int64_t to);

}  // namespace forerun

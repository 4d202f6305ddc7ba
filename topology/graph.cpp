#include "topology/graph.hpp"

#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <limits>

#include "base/contract.hpp"

namespace forerun {
namespace {

/// GPUs of one node on an NVSwitch, each NIC beside its GPUs.
std::vector<DeviceVertex> build_node(const ClusterSpec& cluster, std::int64_t node, Topology& out) {
  TopologyGraph& graph = out.graph;
  const DeviceVertex nvswitch = add_vertex({DeviceKind::kNvSwitch, node}, graph);
  const std::int64_t gpus = cluster.gpus_per_node.value, nics = cluster.nics_per_node.value;
  for (std::int64_t i = 0; i < gpus; ++i) {
    const DeviceVertex gpu = add_vertex({DeviceKind::kGpu, node * gpus + i}, graph);
    add_edge(gpu, nvswitch, {cluster.gpu.nvlink.value, Tier::kNode}, graph);
    out.gpus.push_back(gpu);
  }
  std::vector<DeviceVertex> ports;
  for (std::int64_t i = 0; i < nics; ++i) {
    const DeviceVertex nic = add_vertex({DeviceKind::kNic, node * nics + i}, graph);
    ports.push_back(nic);
  }
  for (std::int64_t i = 0; i < gpus; ++i) {
    const auto nic = static_cast<std::size_t>(i * nics / gpus);
    add_edge(out.gpus[out.gpus.size() - static_cast<std::size_t>(gpus - i)], ports[nic],
             {cluster.nic_per_gpu(), Tier::kRack}, graph);
  }
  return ports;
}

/// One TOR a rack, or one leaf a rail and pod, and a spine above when there is more than one.
void build_network(const ClusterSpec& cluster, const std::vector<std::vector<DeviceVertex>>& nodes,
                   TopologyGraph& graph) {
  const bool rails = cluster.layout.value == NetworkLayout::kRail;
  const auto per_rack = static_cast<std::size_t>(cluster.nodes_per_rack.value);
  std::vector<DeviceVertex> leaves;
  std::vector<double> uplink;
  for (std::size_t first = 0; first < nodes.size(); first += per_rack) {
    const std::size_t end = std::min(first + per_rack, nodes.size());
    const std::size_t switches = rails ? nodes[first].size() : 1;
    for (std::size_t s = 0; s < switches; ++s) {
      leaves.push_back(
          add_vertex({DeviceKind::kLeafSwitch, static_cast<std::int64_t>(leaves.size())}, graph));
      double down = 0;
      for (std::size_t node = first; node < end; ++node) {
        for (std::size_t port = 0; port < nodes[node].size(); ++port) {
          if (rails && port != s) continue;
          add_edge(nodes[node][port], leaves.back(), {cluster.nic_bandwidth.value, Tier::kRack},
                   graph);
          down += cluster.nic_bandwidth.value.value();
        }
      }
      uplink.push_back(down / cluster.oversubscription.value);
    }
  }
  if (leaves.size() < 2) return;
  const DeviceVertex spine = add_vertex({DeviceKind::kSpineSwitch, 0}, graph);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    add_edge(leaves[i], spine, {BytesPerSecond(uplink[i]), Tier::kCluster}, graph);
  }
}

}  // namespace

Topology build_topology(const ClusterSpec& cluster, std::int64_t nodes) {
  Topology topology;
  std::vector<std::vector<DeviceVertex>> ports;
  for (std::int64_t node = 0; node < nodes; ++node) {
    ports.push_back(build_node(cluster, node, topology));
  }
  if (nodes > 1) build_network(cluster, ports, topology.graph);
  return topology;
}

Route route_between(const Topology& topology, std::int64_t from, std::int64_t to) {
  Route route;
  if (from == to) return route;
  const TopologyGraph& graph = topology.graph;
  const DeviceVertex source = topology.gpus[static_cast<std::size_t>(from)];
  const DeviceVertex target = topology.gpus[static_cast<std::size_t>(to)];
  std::vector<DeviceVertex> parent(num_vertices(graph));
  parent[source] = source;
  breadth_first_search(
      graph, source,
      visitor(make_bfs_visitor(record_predecessors(parent.data(), boost::on_tree_edge()))));
  FR_ASSERT(parent[target] != target);
  double narrowest = std::numeric_limits<double>::infinity();
  for (DeviceVertex v = target; v != source; v = parent[v]) {
    const Link& link = graph[edge(parent[v], v, graph).first];
    narrowest = std::min(narrowest, link.bandwidth.value());
    route.tier = std::max(route.tier, link.tier);
    ++route.hops;
  }
  route.bandwidth = BytesPerSecond(narrowest);
  return route;
}

}  // namespace forerun

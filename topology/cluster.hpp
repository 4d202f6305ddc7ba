#pragma once

// A cluster as a description, never as a list of devices: nodes of GPUs on an NVSwitch, NICs, and
// what joins the nodes. Spans (topology/span.hpp) are answered from it; a graph of devices,
// switches and links (topology/graph.hpp) is built from it on demand.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/enum_text.hpp"
#include "base/quantity.hpp"
#include "topology/gpu.hpp"

namespace forerun {

/// How the nodes are joined.
enum class NetworkLayout : std::uint8_t {
  kRack,  ///< all NICs of a rack's nodes on one top-of-rack switch, racks joined by a spine
  kRail,  ///< NIC i of each node of a pod on leaf switch i, leaves joined by spines
};
constexpr auto enum_texts(NetworkLayout) {
  return std::array<std::string_view, 2>{"rack", "rail-optimised"};
}
FR_CHECK_ENUM(NetworkLayout, NetworkLayout::kRail);

enum class Transport : std::uint8_t { kInfiniband, kRoce, kEfa };
constexpr auto enum_texts(Transport) {
  return std::array<std::string_view, 3>{"infiniband", "roce", "efa"};
}
FR_CHECK_ENUM(Transport, Transport::kEfa);

/// From the inside out: what a group of ranks crosses at most.
enum class Tier : std::uint8_t { kGpu, kNode, kRack, kCluster };
constexpr auto enum_texts(Tier) {
  return std::array<std::string_view, 4>{"gpu", "node", "rack", "cluster"};
}
FR_CHECK_ENUM(Tier, Tier::kCluster);

struct ClusterSpec {
  std::string name;
  std::string description;
  GpuSpec gpu;
  std::int64_t nodes = 1;
  std::int64_t gpus = 8;  ///< in all; a multiple of gpus_per_node, or fewer than one node holds
  Sourced<std::int64_t> gpus_per_node;  ///< that NVLink joins, of one host or of several
  Sourced<std::int64_t> gpus_per_host;  ///< where NVLink joins several hosts; else 0
  Sourced<std::int64_t> nics_per_node;
  Sourced<BytesPerSecond> nic_bandwidth;  ///< of one NIC, one direction
  Sourced<Transport> transport;
  Sourced<NetworkLayout> layout;
  Sourced<std::int64_t> nodes_per_rack;  ///< under one TOR; with rails: nodes of a pod
  Sourced<double> oversubscription;      ///< rack or pod downlink over uplink capacity, 1 = none

  /// RDMA bandwidth of one GPU, one direction.
  [[nodiscard]] BytesPerSecond nic_per_gpu() const {
    return nic_bandwidth.value *
           (static_cast<double>(nics_per_node.value) / static_cast<double>(gpus_per_node.value));
  }

  /// One-direction bandwidth that one GPU has at a tier.
  [[nodiscard]] BytesPerSecond bandwidth_at(Tier tier) const;
};

/// Downlink over uplink capacity, at least 1. Throws InputError.
double to_oversubscription(const Node& node, const std::string& key);

/// Reads one catalogue file; the GPU it names is set by the caller (Catalog).
ClusterSpec read_cluster(const Node& root, const std::string& name, std::string& gpu_name);

}  // namespace forerun

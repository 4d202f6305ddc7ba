#include "topology/cluster.hpp"

namespace forerun {

BytesPerSecond ClusterSpec::bandwidth_at(Tier tier) const {
  switch (tier) {
    case Tier::kGpu:
      return gpu.hbm_bandwidth.value;
    case Tier::kNode:
      return gpu.nvlink.value;
    case Tier::kRack:
      return nic_per_gpu();
    case Tier::kCluster:
      return nic_per_gpu() / oversubscription.value;
  }
  return {};
}

double to_oversubscription(const Node& node, const std::string& key) {
  const double value = to_number(node, key);
  if (value < 1) {
    throw InputError(
        node.mark.place(), key,
        "found " + describe(node) + ", must be at least 1 (downlink over uplink capacity)");
  }
  return value;
}

ClusterSpec read_cluster(const Node& root, const std::string& name, std::string& gpu_name) {
  const MappingReader file(
      root, "",
      {"description", "gpu", "gpus_per_node", "gpus_per_host", "nics_per_node", "nic_bandwidth",
       "transport", "layout", "nodes_per_rack", "oversubscription"});
  ClusterSpec cluster;
  cluster.name = name;
  cluster.description = file.required("description", to_text_value);
  gpu_name = file.required("gpu", to_text_value);
  cluster.gpus_per_node = file.required("gpus_per_node", to_sourced(integer_in({1, 1024})));
  if (const auto host = file.optional("gpus_per_host", to_sourced(integer_in({1, 1024})))) {
    cluster.gpus_per_host = *host;
  }
  cluster.nics_per_node = file.required("nics_per_node", to_sourced(integer_in({1, 1024})));
  cluster.nic_bandwidth = file.required("nic_bandwidth", to_sourced(to_bandwidth));
  cluster.transport = file.required("transport", to_sourced(to_enum<Transport>));
  cluster.layout = file.required("layout", to_sourced(to_enum<NetworkLayout>));
  cluster.nodes_per_rack = file.required("nodes_per_rack", to_sourced(integer_in({1, 1 << 20})));
  cluster.oversubscription = file.required("oversubscription", to_sourced(to_oversubscription));
  return cluster;
}

}  // namespace forerun

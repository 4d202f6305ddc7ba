#include "topology/catalog.hpp"

#include "base/catalog_file.hpp"

namespace forerun {

GpuSpec load_gpu(const DataPath& data, const std::string& name, const Place& place,
                 const std::string& key) {
  return read_gpu(read_catalog_file(data, kGpuFolder, "GPU", name, place, key), name);
}

ClusterSpec load_cluster(const DataPath& data, const std::string& name, const Place& place,
                         const std::string& key) {
  std::string gpu_name;
  const Node root = read_catalog_file(data, kClusterFolder, "cluster", name, place, key);
  ClusterSpec cluster = read_cluster(root, name, gpu_name);
  cluster.gpu = load_gpu(data, gpu_name, root.mark.place(), "gpu");
  return cluster;
}

}  // namespace forerun

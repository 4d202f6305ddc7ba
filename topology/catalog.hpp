#pragma once

// The hardware catalogue: names to descriptions, read on demand.

#include <string>

#include "base/data_path.hpp"
#include "topology/cluster.hpp"

namespace forerun {

/// Each throws InputError at `place` for an unknown name, with the nearest known one.
GpuSpec load_gpu(const DataPath& data, const std::string& name, const Place& place,
                 const std::string& key);
ClusterSpec load_cluster(const DataPath& data, const std::string& name, const Place& place,
                         const std::string& key);

inline constexpr const char* kGpuFolder = "topology/catalog/gpus";
inline constexpr const char* kClusterFolder = "topology/catalog/clusters";

}  // namespace forerun

#pragma once

// Which ranks form each group and the slowest link each group crosses, from the description alone.

#include <string>
#include <vector>

#include "topology/span.hpp"
#include "workloads/job.hpp"

namespace forerun {

struct MeshGroup {
  std::string name;         ///< "tp", "dp_shard x cp (parameters)"
  std::int64_t groups = 1;  ///< how many such groups there are
  Span span;
  BytesPerSecond bandwidth;           ///< of one GPU at the slowest tier, one direction
  std::vector<std::int64_t> members;  ///< of the group of rank 0, at most 16
};

struct MeshResult {
  std::vector<std::string> order;  ///< axes with their degrees, outermost first
  std::int64_t gpus = 1;
  std::vector<MeshGroup> groups;
  std::vector<std::string> warnings;
};

MeshResult describe_mesh(const Job& job);

}  // namespace forerun

#pragma once

// Fusion of operators into kernels, as TorchInductor is described to do it: find every pair of
// kernels that share a tensor, score the pairs (same kind of iteration first, then the bytes of
// memory traffic saved, then the distance in the original order), apply them in that order while
// legal, and repeat until nothing changes. In eager execution each operator is its own kernel.

#include <vector>

#include "model/recompute.hpp"

namespace forerun {

struct FusedKernel {
  std::vector<Execution> ops;  ///< in program order
  OpSpace space = OpSpace::kPointwise;
  std::vector<TensorId> reads;   ///< from memory, each once
  std::vector<TensorId> writes;  ///< to memory
};

/// `kept[t]`: tensor t is needed after this pass and must be written.
std::vector<FusedKernel> fuse(const PlacedGraph& graph, const std::vector<Execution>& pass,
                              const std::vector<bool>& kept, bool compiled);

}  // namespace forerun

#pragma once

// From a model's block and a plan to the kernels of its two passes: build the operator graph, place
// and differentiate it, choose what is recomputed, fuse, and note memory and order.

#include <optional>

#include "model/kernel.hpp"
#include "model/recompute.hpp"
#include "workloads/blocks.hpp"
#include "workloads/software.hpp"

namespace forerun {

/// Everything that decides the kernels of a block on one rank.
struct BlockRequest {
  BlockKind kind = BlockKind::kDecoder;
  BlockOptions options;
  MeshDegrees degrees;
  AutodiffOptions autodiff;
  Recompute recompute = Recompute::kNone;
  SaveList save_list;
  std::int64_t window = 0;  ///< sliding window of attention, 0 = full
  bool compiled = false;
  bool async_tp = false;
  bool shares_table = false;  ///< the head's projection is the embedding's table, counted there
  bool ring = false;          ///< cp exchanges keys and values piece by piece beside attention
  /// Where parameters are replicated: gradients go into a buffer as soon as they are made.
  std::optional<GradientAccumulation> accumulation;
};

BlockKernels block_kernels(const ModelSpec& model, const BlockRequest& request);

}  // namespace forerun

#pragma once

// Asynchronous tensor parallelism: a collective and the matrix products around it, cut into one
// piece a rank, so that pieces are copied beside the product of earlier pieces (PyTorch's
// micro-pipeline pass, torch/_inductor/fx_passes/micro_pipeline_tp.py). An all-gather is fused when
// it feeds matrix products as left operand; a reduce-scatter when it reduces exactly one product.

#include <vector>

#include "model/kernel.hpp"

namespace forerun {

/// Marks the collectives that are hidden (Kernel::overlapped_with) and the products that are cut
/// (Kernel::overlap_chunks).
void overlap_tensor_parallel(std::vector<Kernel>& kernels, int tp);

/// Ring attention: keys and values, and backward their gradients, go from rank to rank beside the
/// attention of the piece that is there (Liu et al. 2023; TransformerEngine, p2p). Marks the cp
/// collectives of a pass.
void overlap_ring(std::vector<Kernel>& kernels);

}  // namespace forerun

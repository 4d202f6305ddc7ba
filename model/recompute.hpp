#pragma once

// Activation recomputation: which tensors of the forward pass are kept for the backward one, and
// which forward operators run a second time.
//
// Eager checkpointing runs the block's forward again, first of all, up to the last operator whose
// result the backward pass needs (torch.utils.checkpoint, early_stop), skipping operators whose
// results were kept. A compiled graph recomputes just what is needed, right before it is needed;
// and without checkpointing its partitioner still recomputes fusible operators rather than save
// their results (AOTAutograd's min-cut rematerialisation; here by the rule that extern operators'
// and reductions' results and block inputs are saved).

#include <vector>

#include "model/autodiff.hpp"
#include "workloads/plan.hpp"

namespace forerun {

/// One execution of an operator.
struct Execution {
  OpId op;
  bool recompute = false;
};

struct BlockPasses {
  std::vector<Execution> forward;
  std::vector<Execution> backward;
  std::vector<bool> saved;  ///< by tensor: kept from forward to backward
};

/// What selective per-operator checkpointing keeps (torchtitan, models/llama/parallelize_llama.py,
/// _save_list: aten.mm, flash attention, reduce_scatter_tensor, all_to_all_single; every second mm
/// is recomputed, as are grouped products and the router's).
struct SaveList {
  int matmul_every = 2;  ///< matmuls 1, 1 + n, 1 + 2n ... of a block are kept
  bool attention = true;
  bool reduce_scatter = true;
  bool all_to_all = true;
};

BlockPasses split_passes(const DifferentiatedBlock& block, Recompute policy, bool compiled,
                         const SaveList& save_list);

}  // namespace forerun

#pragma once

// From the kernels of a block to operations with durations and host times: the cost layer of
// lowering. Data-parallel sharding adds its own operations around them (model/sharding).

#include <vector>

#include "model/cost/costs.hpp"
#include "model/kernel.hpp"
#include "model/program.hpp"
#include "workloads/blocks.hpp"

namespace forerun {

/// One pass of a block as operations; `after` counts from the first of them, issue times from when
/// the host enters the pass.
struct CostedPass {
  std::vector<Operation> operations;
  std::vector<MemoryEvent> events;
  double host_seconds = 0;
};

struct CostedBlock {
  BlockKind kind = BlockKind::kDecoder;
  const BlockKernels* kernels = nullptr;
  CostedPass forward;
  CostedPass backward;
};

struct CostingContext {
  const Costs* costs = nullptr;
  const HostCosts* host = nullptr;
  AttentionKernel attention = AttentionKernel::kFlash2;
  Precision precision = Precision::kBf16;  ///< of the step
  Span tp;
  Span cp;
  Span expert;  ///< ranks over which experts are spread
};

CostedBlock cost_block(BlockKind kind, const BlockKernels& kernels, const CostingContext& context);

}  // namespace forerun

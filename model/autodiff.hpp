#pragma once

// The backward pass of a block, derived from its forward operators in reverse order by one rule an
// operator, as autograd does. The operators of both passes stand in one placed graph.

#include <vector>

#include "model/placed_graph.hpp"

namespace forerun {

struct ParameterGradient {
  TensorId parameter;
  TensorId gradient;
};

struct DifferentiatedBlock {
  PlacedGraph graph;
  int forward_ops = 0;  ///< operators [0, forward_ops) are the forward pass
  TensorId input;
  TensorId output;
  TensorId output_gradient;  ///< invalid for a loss, whose gradient is 1
  TensorId input_gradient;   ///< invalid where the input has none (token ids)
  std::vector<ParameterGradient> parameter_gradients;
};

/// Options of the backward pass that depend on how a stack writes its layers.
struct AutodiffOptions {
  bool regather_in_backward = false;  ///< linears save the input before its all-gather
  bool fused_quantise = false;        ///< a cast makes the transpose too
};

/// Places the forward operators of `block` on the mesh and derives the backward ones.
DifferentiatedBlock differentiate(const BlockGraph& block, const MeshDegrees& degrees,
                                  const AutodiffOptions& options);

}  // namespace forerun

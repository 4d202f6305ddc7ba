#pragma once

// The operator graph of a block on the mesh: every tensor has a layout, and wherever an operator
// needs an input laid out otherwise, a redistribution (a collective) stands before it. Operators
// are appended one by one, forward and backward through the same rules (model/propagation.cpp), so
// no table says how many all-reduces tensor parallelism needs.

#include <array>
#include <vector>

#include "model/placement.hpp"
#include "workloads/operator_graph.hpp"

namespace forerun {

/// Degrees of the mesh dimensions inside a block, and how the block is cut along them.
struct MeshDegrees {
  int tp = 1;
  int cp = 1;
  bool sequence_parallel = false;  ///< activations between linears are cut along the sequence
  int ep = 1;                      ///< ranks over which experts are spread
  bool whole_sequences = false;    ///< under cp attention is cut by heads (Ulysses)

  [[nodiscard]] int of(MeshDim dim) const {
    return dim == MeshDim::kTensor ? tp : dim == MeshDim::kContext ? cp : ep;
  }
};

/// A redistribution in the graph.
struct Redistribution {
  MeshDim dim = MeshDim::kTensor;
  Placement from;
  Placement to;
  CollectiveKind collective = CollectiveKind::kNone;
};

class PlacedGraph {
 public:
  explicit PlacedGraph(const MeshDegrees& degrees) : degrees_(degrees) {}

  TensorId add_tensor(const Tensor& tensor, Layout layout);
  /// Places `op`: its inputs are redistributed where its rule demands and its outputs get layouts.
  OpId add(Operator op);

  /// `id` with the given placement on one mesh dimension: itself, or a redistributed copy (made
  /// once and reused).
  TensorId redistributed(TensorId id, MeshDim dim, Placement to);
  TensorId redistributed(TensorId id, Layout to);
  /// Forgets copies made so far: the backward pass redistributes anew what was not saved.
  void forget_copies() { copies_.clear(); }

  /// The layout of activations between blocks: cut along the sequence by cp, and by tp under
  /// sequence parallelism.
  [[nodiscard]] Layout boundary_layout() const;
  /// The layout a parameter has by its style.
  [[nodiscard]] Layout parameter_layout(ParameterStyle style) const;

  [[nodiscard]] const OperatorGraph& graph() const { return graph_; }
  [[nodiscard]] OperatorGraph& graph() { return graph_; }
  [[nodiscard]] const Tensor& operator[](TensorId id) const { return graph_[id]; }
  [[nodiscard]] const Operator& operator[](OpId id) const { return graph_[id]; }
  [[nodiscard]] Layout layout(TensorId id) const {
    return layouts_[static_cast<std::size_t>(id.index())];
  }
  /// The tensor that `id` was redistributed from; itself where it was not.
  [[nodiscard]] TensorId source(TensorId id) const;
  [[nodiscard]] const Redistribution& redistribution(OpId id) const;
  [[nodiscard]] const MeshDegrees& degrees() const { return degrees_; }

  /// Shape on one rank: cut dimensions rounded up.
  [[nodiscard]] Dims local_dims(TensorId id) const;
  [[nodiscard]] std::int64_t local_bytes(TensorId id) const;
  /// Bytes of the tensor as the group of one mesh dimension sees it (cut only by the others).
  [[nodiscard]] std::int64_t group_bytes(TensorId id, MeshDim dim) const;

 private:
  struct Copy {
    TensorId of;
    MeshDim dim;
    Placement to;
    TensorId copy;
  };

  MeshDegrees degrees_;
  OperatorGraph graph_;
  std::vector<Layout> layouts_;
  std::vector<Copy> copies_;
  std::vector<std::pair<OpId, Redistribution>> redistributions_;
};

/// What an operator's rule says for one mesh dimension.
struct OpPlacement {
  std::array<Placement, 8> inputs;
  std::array<Placement, 4> outputs;
};

/// The rule of `op` on a mesh dimension, given where its inputs lie now (model/propagation.cpp).
OpPlacement propagate(const Operator& op, const PlacedGraph& graph, MeshDim dim);

}  // namespace forerun

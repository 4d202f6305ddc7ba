#include "model/placed_graph.hpp"

#include <algorithm>

#include "base/contract.hpp"

namespace forerun {

TensorId PlacedGraph::add_tensor(const Tensor& tensor, Layout layout) {
  layouts_.push_back(layout);
  return graph_.add_tensor(tensor);
}

namespace {

using DimOrder = std::array<MeshDim, kMeshDims>;
constexpr DimOrder kTokensOut{MeshDim::kExpert, MeshDim::kTensor, MeshDim::kContext};
constexpr DimOrder kTokensBack{MeshDim::kTensor, MeshDim::kContext, MeshDim::kExpert};

/// Rows travel between ranks while they are cut over tp: before experts that are cut over it gather
/// them, and after those have scattered their partial sums.
const DimOrder& order_of(Fn fn) {
  return fn == Fn::kUnpermute || fn == Fn::kPermuteBackward ? kTokensBack : kTokensOut;
}

}  // namespace

OpId PlacedGraph::add(Operator op) {
  for (const MeshDim dim : order_of(op.fn)) {
    if (degrees_.of(dim) == 1) continue;
    const OpPlacement rule = propagate(op, *this, dim);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      op.inputs[i] = redistributed(op.inputs[i], dim, rule.inputs[i]);
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      layouts_[static_cast<std::size_t>(op.outputs[i].index())][dim] = rule.outputs[i];
    }
  }
  return graph_.add(op);
}

TensorId PlacedGraph::redistributed(TensorId id, MeshDim dim, Placement to) {
  const Placement from = layout(id)[dim];
  if (from == to || degrees_.of(dim) == 1) return id;
  for (const Copy& copy : copies_) {
    if (copy.of == id && copy.dim == dim && copy.to == to) return copy.copy;
  }
  Tensor tensor = graph_[id];
  tensor.parameter = ParameterStyle::kNone;
  tensor.gradient_of = {};
  Layout changed = layout(id);
  changed[dim] = to;
  Operator op;
  op.fn = Fn::kRedistribute;
  op.space = OpSpace::kExtern;
  op.name = tensor.name;
  op.inputs = {id};
  op.outputs = {add_tensor(tensor, changed)};
  const OpId made = graph_.add(op);
  redistributions_.emplace_back(made, Redistribution{dim, from, to, collective_of(from, to)});
  copies_.push_back({id, dim, to, op.outputs[0]});
  return op.outputs[0];
}

TensorId PlacedGraph::redistributed(TensorId id, Layout to) {
  for (const MeshDim dim : kTokensBack) {
    id = redistributed(id, dim, to[dim]);
  }
  return id;
}

Layout PlacedGraph::boundary_layout() const {
  Layout layout;
  if (degrees_.cp > 1) layout[MeshDim::kContext] = Placement::shard(1);
  if (degrees_.tp > 1 && degrees_.sequence_parallel) layout[MeshDim::kTensor] = Placement::shard(1);
  return layout;
}

Layout PlacedGraph::parameter_layout(ParameterStyle style) const {
  Layout layout;
  if (degrees_.tp == 1) return layout;
  if (style == ParameterStyle::kColumn || style == ParameterStyle::kVocabulary ||
      style == ParameterStyle::kExpertColumn) {
    layout[MeshDim::kTensor] = Placement::shard(0);
  }
  if (style == ParameterStyle::kRow || style == ParameterStyle::kExpertRow) {
    layout[MeshDim::kTensor] = Placement::shard(1);
  }
  return layout;
}

TensorId PlacedGraph::source(TensorId id) const {
  const OpId producer = graph_[id].producer;
  if (!producer.valid() || graph_[producer].fn != Fn::kRedistribute) return id;
  return source(graph_[producer].inputs[0]);
}

const Redistribution& PlacedGraph::redistribution(OpId id) const {
  const auto at = std::find_if(redistributions_.begin(), redistributions_.end(),
                               [&](const auto& entry) { return entry.first == id; });
  FR_ASSERT(at != redistributions_.end());
  return at->second;
}

Dims PlacedGraph::local_dims(TensorId id) const {
  Dims dims = graph_[id].dims;
  for (const MeshDim dim : {MeshDim::kTensor, MeshDim::kContext}) {
    const Placement placement = layout(id)[dim];
    if (!placement.is_shard()) continue;
    std::int64_t& size = dims[static_cast<std::size_t>(placement.dim)];
    size = (size + degrees_.of(dim) - 1) / degrees_.of(dim);
  }
  return dims;
}

namespace {
std::int64_t bytes(const Dims& dims, DType type) {
  return dims[0] * dims[1] * dims[2] * size_of(type);
}
}  // namespace

std::int64_t PlacedGraph::local_bytes(TensorId id) const {
  return bytes(local_dims(id), graph_[id].dtype);
}

std::int64_t PlacedGraph::group_bytes(TensorId id, MeshDim dim) const {
  const std::int64_t local = local_bytes(id);
  return layout(id)[dim].is_shard() ? local * degrees_.of(dim) : local;
}

}  // namespace forerun

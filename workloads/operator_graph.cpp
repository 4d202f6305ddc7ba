#include "workloads/operator_graph.hpp"

namespace forerun {

TensorId OperatorGraph::add_tensor(const Tensor& tensor) {
  tensors_.push_back(tensor);
  return TensorId(static_cast<std::int32_t>(tensors_.size()) - 1);
}

OpId OperatorGraph::add(const Operator& op) {
  const auto vertex = add_vertex(op, *graph_);
  const OpId id(static_cast<std::int32_t>(vertex));
  for (const TensorId output : op.outputs)
    (*this)[output].producer = id;
  for (const TensorId input : op.inputs) {
    const OpId producer = (*this)[input].producer;
    if (!producer.valid()) continue;
    add_edge(static_cast<std::size_t>(producer.index()), vertex, input, *graph_);
  }
  return id;
}

}  // namespace forerun

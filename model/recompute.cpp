#include "model/recompute.hpp"

#include <algorithm>

namespace forerun {
namespace {

std::size_t at(TensorId id) {
  return static_cast<std::size_t>(id.index());
}

class PassSplitter {
 public:
  PassSplitter(const DifferentiatedBlock& block, Recompute policy, bool compiled,
               const SaveList& save_list)
      : block_(block),
        graph_(block.graph),
        policy_(policy),
        compiled_(compiled),
        save_list_(save_list) {}

  BlockPasses run() {
    const auto tensors = static_cast<std::size_t>(graph_.graph().tensors());
    passes_.saved.assign(tensors, false);
    needed_.assign(tensors, false);
    may_save_.assign(tensors, policy_ == Recompute::kNone && !compiled_);
    for (int i = 0; i < block_.forward_ops; ++i)
      passes_.forward.push_back({OpId(i), false});
    mark_needed();
    choose_savable();
    if (policy_ == Recompute::kNone && !compiled_) {
      backward_without_recompute();
    } else if (compiled_) {
      backward_just_in_time();
    } else {
      backward_after_recompute();
    }
    return std::move(passes_);
  }

 private:
  [[nodiscard]] bool of_forward(TensorId id) const {
    if (graph_[id].parameter != ParameterStyle::kNone) return false;
    const OpId producer = graph_[id].producer;
    return producer.valid() ? producer.index() < block_.forward_ops
                            : id != block_.output_gradient && graph_[id].differentiable;
  }

  void mark_needed() {
    for (int i = block_.forward_ops; i < graph_.graph().ops(); ++i) {
      for (const TensorId input : graph_[OpId(i)].inputs) {
        if (of_forward(input)) needed_[at(input)] = true;
      }
    }
  }

  void choose_savable() {
    may_save_[at(block_.input)] = true;
    int matmuls = 0;
    for (const Execution& e : passes_.forward) {
      const Operator& op = graph_[e.op];
      if (op.fn == Fn::kLinear && !routes(op)) ++matmuls;
      if (!keeps(op, e.op, matmuls)) continue;
      for (const TensorId output : op.outputs)
        may_save_[at(output)] = true;
    }
  }

  [[nodiscard]] bool keeps(const Operator& op, OpId id, int matmuls) const {
    switch (policy_) {
      case Recompute::kFull:
        return false;
      case Recompute::kSelectiveOp:
        if (routes(op)) return false;
        if (op.fn == Fn::kLinear) return (matmuls - 1) % save_list_.matmul_every == 0;
        if (op.fn == Fn::kAttention) return save_list_.attention;
        return op.fn == Fn::kRedistribute && listed(graph_.redistribution(id).collective);
      case Recompute::kSelectiveAttention:
        return op.fn != Fn::kAttention && (!compiled_ || kept_by_compiler(op));
      case Recompute::kNone:
        return kept_by_compiler(op);
    }
    return true;
  }

  [[nodiscard]] bool kept_by_compiler(const Operator& op) const {
    return op.space == OpSpace::kExtern ? !widened(op)
                                        : op.space != OpSpace::kPointwise || narrows(op);
  }

  [[nodiscard]] static bool routes(const Operator& op) { return op.name == "router"; }

  [[nodiscard]] bool listed(CollectiveKind kind) const {
    return (kind == CollectiveKind::kReduceScatter && save_list_.reduce_scatter) ||
           (kind == CollectiveKind::kAllToAll && save_list_.all_to_all);
  }

  /// An fp32 result that is at once cast down: the narrow copy is kept instead.
  [[nodiscard]] bool widened(const Operator& op) const { return op.fn == Fn::kComplexMul; }
  [[nodiscard]] bool narrows(const Operator& op) const {
    if (op.fn != Fn::kCast) return false;
    const OpId producer = graph_[op.inputs[0]].producer;
    return producer.valid() && widened(graph_[producer]);
  }

  void backward_without_recompute() {
    for (std::size_t i = 0; i < needed_.size(); ++i)
      passes_.saved[i] = needed_[i];
    append_backward_ops();
  }

  void append_backward_ops() {
    for (int i = block_.forward_ops; i < graph_.graph().ops(); ++i) {
      passes_.backward.push_back({OpId(i), false});
    }
  }

  /// Eager: the forward pass runs again up to the last needed result.
  void backward_after_recompute() {
    int last = -1;
    for (std::size_t i = 0; i < needed_.size(); ++i) {
      const TensorId id(static_cast<std::int32_t>(i));
      if (needed_[i] && !may_save_[i]) last = std::max(last, graph_[id].producer.index());
    }
    for (int i = 0; i <= last; ++i) {
      const Operator& op = graph_[OpId(i)];
      const bool kept = std::all_of(op.outputs.begin(), op.outputs.end(),
                                    [&](TensorId id) { return may_save_[at(id)]; });
      if (!kept) passes_.backward.push_back({OpId(i), true});
    }
    save_for(passes_.backward);
    append_backward_ops();
  }

  /// What may be kept is kept where the backward pass or what runs again reads it. A save list is
  /// applied as the operators run, whether or not a result is read later.
  void save_for(const std::vector<Execution>& recomputed) {
    const bool listed = policy_ == Recompute::kSelectiveOp;
    std::vector<bool> read = needed_;
    for (const Execution& e : recomputed) {
      for (const TensorId input : graph_[e.op].inputs)
        read[at(input)] = true;
    }
    for (std::size_t i = 0; i < may_save_.size(); ++i) {
      passes_.saved[i] = may_save_[i] && (listed || read[i]);
    }
  }

  /// Compiled: a result is recomputed where the first backward operator needs it.
  void backward_just_in_time() {
    have_.assign(needed_.size(), false);
    for (int i = block_.forward_ops; i < graph_.graph().ops(); ++i) {
      for (const TensorId input : graph_[OpId(i)].inputs)
        make_available(input);
      passes_.backward.push_back({OpId(i), false});
    }
  }

  void make_available(TensorId id) {
    if (!of_forward(id) || have_[at(id)]) return;
    have_[at(id)] = true;
    if (may_save_[at(id)]) {
      passes_.saved[at(id)] = true;
      return;
    }
    const OpId producer = graph_[id].producer;
    for (const TensorId input : graph_[producer].inputs)
      make_available(input);
    for (const TensorId output : graph_[producer].outputs)
      have_[at(output)] = true;
    passes_.backward.push_back({producer, true});
  }

  const DifferentiatedBlock& block_;
  const PlacedGraph& graph_;
  Recompute policy_;
  bool compiled_;
  SaveList save_list_;
  BlockPasses passes_;
  std::vector<bool> needed_;
  std::vector<bool> may_save_;
  std::vector<bool> have_;
};

}  // namespace

BlockPasses split_passes(const DifferentiatedBlock& block, Recompute policy, bool compiled,
                         const SaveList& save_list) {
  return PassSplitter(block, policy, compiled, save_list).run();
}

}  // namespace forerun

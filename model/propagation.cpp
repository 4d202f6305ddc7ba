// The sharding rules of operators on one mesh dimension. Each follows from what the operator
// computes: a matrix product whose contracted dimension is cut gives partial sums, a pointwise
// operator wants its operands cut alike, attention wants whole sequences of keys and values.
// (The same reasoning as torch.distributed.tensor's operator strategies.)

#include <algorithm>

#include "base/contract.hpp"
#include "model/placed_graph.hpp"

namespace forerun {
namespace {

constexpr Placement kR = Placement::replicate();
constexpr Placement kP = Placement::partial();
constexpr Placement kBatch = Placement::shard(0);
constexpr Placement kSeq = Placement::shard(1);
constexpr Placement kFeature = Placement::shard(2);
constexpr Placement kOut = Placement::shard(0);  // of a weight matrix [out, in]
constexpr Placement kIn = Placement::shard(1);
constexpr Placement kBySender = Placement::shard(1);  // rows on the expert dimension
constexpr Placement kByExpert = Placement::shard(0);

class Rule {
 public:
  Rule(const Operator& op, const PlacedGraph& graph, MeshDim dim)
      : op_(op), graph_(graph), dim_(dim) {}

  [[nodiscard]] OpPlacement apply() const {
    switch (op_.fn) {
      case Fn::kLinear:
        return linear();
      case Fn::kLinearDgrad:
        return dgrad();
      case Fn::kLinearWgrad:
        return wgrad();
      case Fn::kAttention:
        return attention();
      case Fn::kAttentionBackward:
        return attention_backward();
      case Fn::kEmbedding:
        return embedding();
      case Fn::kEmbeddingBackward:
        return embedding_backward();
      case Fn::kLogSoftmax:
      case Fn::kLogSoftmaxBackward:
        return log_softmax();
      case Fn::kFusedLoss:
      case Fn::kNll:
      case Fn::kNllParallel:
        return scalar_loss();
      case Fn::kFusedLossBackward:
      case Fn::kNllBackward:
        return nll_backward();
      case Fn::kNorm:
      case Fn::kNormBackward:
        return norm();
      case Fn::kColumnSum:
        return column_sum();
      case Fn::kHeadNorm:
      case Fn::kHeadNormBackward:
        return head_norm();
      case Fn::kGroupedLinear:
        return on_experts() ? OpPlacement{{kByExpert, kR}, {kByExpert}} : linear();
      case Fn::kGroupedDgrad:
        return on_experts() ? OpPlacement{{kByExpert, kR}, {kByExpert}} : dgrad();
      case Fn::kGroupedWgrad:
        return on_experts() ? OpPlacement{{kByExpert, kByExpert}, {kR}} : wgrad();
      case Fn::kTopK:
        return top_k();
      case Fn::kTopKBackward:
        return {{at(1), at(1)}, {at(1)}};
      case Fn::kPermute:
        return permute();
      case Fn::kPermuteBackward:
        return permute_backward();
      case Fn::kArrange:
        return arrange();
      case Fn::kUnpermute:
        return unpermute();
      case Fn::kUnpermuteBackward:
        return unpermute_backward();
      case Fn::kMax:
        return {{at(0)}, {at(0).is_shard() ? kP : kR}};
      default:
        return pointwise();
    }
  }

 private:
  [[nodiscard]] Placement at(std::size_t input) const {
    return graph_.layout(op_.inputs[input])[dim_];
  }
  [[nodiscard]] const Tensor& tensor(std::size_t input) const { return graph_[op_.inputs[input]]; }

  /// Where partial sums go when they cannot stay partial.
  [[nodiscard]] Placement reduced() const { return graph_.boundary_layout()[dim_]; }

  /// An input that has size 1 along the cut dimension is broadcast and stays whole.
  [[nodiscard]] Placement follow(std::size_t input, Placement target) const {
    const bool whole = !on_experts() && target.is_shard() &&
                       tensor(input).dims[static_cast<std::size_t>(target.dim)] == 1;
    return whole ? kR : target;
  }

  [[nodiscard]] bool broadcast(std::size_t input) const {
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
      largest = std::max(largest, tensor(i).elements());
    }
    return tensor(input).elements() < largest;
  }

  [[nodiscard]] bool all_partial() const {
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
      if (!at(i).is_partial()) return false;
    }
    return !op_.inputs.empty();
  }

  /// Operands of full size must lie alike: where one is cut, the others are cut too.
  [[nodiscard]] OpPlacement pointwise() const {
    const bool linear_op = op_.fn == Fn::kAdd || op_.fn == Fn::kCast || op_.fn == Fn::kCopy;
    OpPlacement rule;
    if (linear_op && all_partial()) {
      rule.inputs.fill(kP);
      rule.outputs.fill(kP);
      return rule;
    }
    Placement target = kR;
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
      if (!broadcast(i) && at(i).is_partial() && target.is_replicate()) target = reduced();
    }
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
      if (!broadcast(i) && at(i).is_shard()) target = at(i);
    }
    for (std::size_t i = 0; i < op_.inputs.size(); ++i)
      rule.inputs[i] = follow(i, target);
    const bool statistic = op_.space == OpSpace::kRowReduction && target == kFeature;
    rule.outputs.fill(statistic ? kP : target);
    return rule;
  }

  [[nodiscard]] OpPlacement linear() const {
    const Placement w = at(1);
    if (w == kOut) return {{kR, kOut}, {kFeature}};
    if (w == kIn) return {{kFeature, kIn}, {kP}};
    // Features cut by heads go back to a cut sequence.
    const Placement x = at(0).is_partial() || at(0) == kFeature ? reduced() : at(0);
    return {{x, kR}, {x}};
  }

  [[nodiscard]] OpPlacement dgrad() const {  // (dy, w) -> dx
    const Placement w = at(1);
    if (w == kOut) return {{kFeature, kOut}, {kP}};
    if (w == kIn) return {{kR, kIn}, {kFeature}};
    const Placement dy = at(0).is_partial() ? kR : at(0);
    return {{dy, kR}, {dy}};
  }

  [[nodiscard]] OpPlacement wgrad() const {  // (dy, x) -> dw[out, in]
    const Placement dy = at(0), x = at(1);
    if (dy == kFeature) return {{kFeature, kR}, {kOut}};
    if (x == kFeature) return {{kR, kFeature}, {kIn}};
    if (dy.is_shard() && dy == x) return {{dy, x}, {kP}};
    return {{kR, kR}, {kR}};
  }

  /// Heads may be cut (features of q, k and v alike); a cut sequence needs whole keys and values.
  [[nodiscard]] OpPlacement attention() const {
    if (by_heads()) return all(kFeature);
    if (at(0) == kSeq) return {{kSeq, kR, kR}, {kSeq, kSeq}};
    return all(at(0));
  }

  [[nodiscard]] OpPlacement attention_backward() const {  // (dout, q, k, v, out, lse)
    const Placement q = at(1);
    if (by_heads()) return all(kFeature);
    if (q == kSeq) return {{kSeq, kSeq, kR, kR, kSeq, kSeq}, {kSeq, kP, kP}};
    return all(q);
  }

  [[nodiscard]] bool by_heads() const {
    return dim_ == MeshDim::kContext && graph_.degrees().whole_sequences;
  }
  [[nodiscard]] static OpPlacement all(Placement placement) {
    OpPlacement rule;
    rule.inputs.fill(placement);
    rule.outputs.fill(placement);
    return rule;
  }

  [[nodiscard]] OpPlacement embedding() const {  // (ids, table)
    if (at(1) == kOut) return {{kR, kOut}, {kP}};
    return {{at(0), kR}, {at(0)}};
  }

  [[nodiscard]] OpPlacement embedding_backward() const {  // (dy, ids, table for its shape)
    if (at(2) == kOut) return {{kR, kR, kOut}, {kOut}};
    if (at(0).is_shard()) return {{at(0), at(0), kR}, {kP}};
    return {{kR, kR, kR}, {kR}};
  }

  [[nodiscard]] OpPlacement log_softmax() const {
    const Placement p = at(0) == kFeature ? kR : at(0);
    OpPlacement rule;
    rule.inputs.fill(p);
    rule.outputs.fill(p);
    return rule;
  }

  [[nodiscard]] OpPlacement nll_backward() const { return {{at(0)}, {at(0)}}; }

  [[nodiscard]] OpPlacement scalar_loss() const { return {{at(0)}, {kR}}; }

  [[nodiscard]] OpPlacement norm() const {
    Placement x = at(0).is_partial() ? reduced() : at(0);
    if (x == kFeature) x = kR;
    OpPlacement rule;
    for (std::size_t i = 0; i < op_.inputs.size(); ++i)
      rule.inputs[i] = follow(i, x);
    rule.outputs.fill(x);
    // Backward: the gradient of the weight is summed over rows that this rank holds.
    if (op_.fn == Fn::kNormBackward) rule.outputs[1] = x == kSeq || x == kBatch ? kP : kR;
    return rule;
  }

  // ---- mixture of experts ---------------------------------------------------------------------

  [[nodiscard]] bool on_experts() const { return dim_ == MeshDim::kExpert; }

  [[nodiscard]] OpPlacement head_norm() const {  // (x, w) or (dy, x, w): heads may be cut
    const bool backward = op_.fn == Fn::kHeadNormBackward;
    const Placement x = at(0).is_partial() ? reduced() : at(0);
    if (!backward) return {{x, kR}, {x}};
    return {{x, x, kR}, {x, x.is_shard() ? kP : kR}};
  }

  /// Without expert parallelism experts are cut over tp and every rank routes all tokens.
  [[nodiscard]] OpPlacement top_k() const {
    const bool all = dim_ == MeshDim::kTensor && graph_.degrees().ep == 1;
    const Placement x = at(0).is_partial() ? reduced() : at(0);
    const Placement p = all || x == kFeature ? kR : x;
    return {{p}, {p, p}};
  }

  [[nodiscard]] OpPlacement permute() const {  // (tokens, order)
    if (on_experts()) return {{kR, kR}, {kBySender}};
    return {{at(1), at(1)}, {at(1)}};
  }

  [[nodiscard]] OpPlacement permute_backward() const {  // (dy, order)
    if (on_experts()) return {{kBySender, kR}, {kR}};
    if (at(0).is_partial() && at(1).is_replicate()) return {{kP, kR}, {kP}};
    return {{at(1), at(1)}, {at(1)}};
  }

  [[nodiscard]] OpPlacement arrange() const {
    if (on_experts()) return {{kByExpert}, {kByExpert}};
    const Placement x = at(0).is_partial() ? reduced() : at(0);
    return {{x}, {x}};
  }

  [[nodiscard]] OpPlacement unpermute() const {  // (rows, weights, order)
    if (on_experts()) return {{kBySender, kR, kR}, {kR}};
    const Placement p = at(2);
    if (at(0).is_partial() && p.is_replicate()) return {{kP, kR, kR}, {kP}};
    return {{p, p, p}, {p}};
  }

  [[nodiscard]] OpPlacement unpermute_backward() const {  // (dy, rows, weights, order)
    if (on_experts()) return {{kR, kBySender, kR, kR}, {kBySender, kR}};
    const Placement p = at(3);
    if (at(1).is_partial() && p.is_replicate()) return {{kR, kP, kR, kR}, {kR, kP}};
    return {{p, p, p, p}, {p, p}};
  }

  [[nodiscard]] OpPlacement column_sum() const {
    const Placement x = at(0);
    if (x == kFeature) return {{kFeature}, {kFeature}};
    return {{x}, {x.is_replicate() ? kR : kP}};
  }

  const Operator& op_;
  const PlacedGraph& graph_;
  MeshDim dim_;
};

}  // namespace

OpPlacement propagate(const Operator& op, const PlacedGraph& graph, MeshDim dim) {
  return Rule(op, graph, dim).apply();
}

}  // namespace forerun

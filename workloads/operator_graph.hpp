#pragma once

// The operator graph of one block of a model: operators in program order as vertices of a
// Boost.Graph, tensors on its edges. Shapes are global (one microbatch of one model replica, the
// whole sequence, all heads); model/ places them on the mesh, derives the backward pass from it,
// fuses and lowers it. Operators are those that a framework launches in eager mode.

#include <array>
#include <boost/container/static_vector.hpp>
#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/id.hpp"

namespace forerun {

using TensorId = Id<struct TensorTag>;
using OpId = Id<struct OpTag>;

/// [batch, sequence, features]; a weight matrix is [out, in, 1], a weight vector [1, 1, features],
/// the matrices of the experts that one rank holds [out, in, experts].
using Dims = std::array<std::int64_t, 3>;

/// How tensor parallelism cuts a parameter (torch.distributed.tensor.parallel styles).
enum class ParameterStyle : std::uint8_t {
  kNone,
  kReplicated,
  kColumn,
  kRow,
  kVocabulary,
  kExpert,  ///< experts of one rank, whole; those of other ranks are other parameters
  kExpertColumn,
  kExpertRow
};
constexpr bool of_experts(ParameterStyle style) {
  return style == ParameterStyle::kExpert || style == ParameterStyle::kExpertColumn ||
         style == ParameterStyle::kExpertRow;
}

struct Tensor {
  std::string_view name;
  DType dtype = DType::kBf16;
  Dims dims{1, 1, 1};
  ParameterStyle parameter = ParameterStyle::kNone;  ///< kNone: an activation
  bool differentiable = true;                        ///< false: token ids, rotary tables, scales
  OpId producer;                                     ///< invalid: an input of the block
  TensorId gradient_of;  ///< valid: its gradient is that of this tensor (straight through)

  [[nodiscard]] std::int64_t elements() const { return dims[0] * dims[1] * dims[2]; }
};

/// What an operator computes. model/autodiff.cpp holds the backward rule of each.
enum class Fn : std::uint8_t {
  kCast,  ///< to another dtype
  kCopy,  ///< another memory layout, same values
  kAdd,
  kSubtract,
  kMul,
  kExp,
  kScale,  ///< by a constant or a scalar tensor, or clamped
  kAbs,
  kSilu,
  kGelu,
  kSwiglu,  ///< silu of the first half of the features times the second half
  kSplit,   ///< views of parts of the features; no kernel
  kConcat,  ///< its backward: the parts' gradients copied side by side
  kSquare,
  kRsqrt,        ///< of a row statistic
  kMean,         ///< over features
  kSum,          ///< over features
  kMax,          ///< over everything
  kRotary,       ///< fused rotary embedding
  kComplexMul,   ///< complex product; no compiler fuses it
  kExpandHeads,  ///< key/value heads repeated to the number of query heads
  kReduceHeads,  ///< its backward: summed over the repeats
  kNorm,         ///< fused RMSNorm or LayerNorm
  kNormBackward,
  kTranspose,    ///< a transposed copy
  kLinear,       ///< y[b,s,out] = x[b,s,in] . w[out,in]
  kLinearDgrad,  ///< dx = dy . w
  kLinearWgrad,  ///< dw = dy^T . x
  kAttention,    ///< q, k, v -> out, log-sum-exp
  kAttentionBackward,
  kEmbedding,
  kEmbeddingBackward,
  kLogSoftmax,
  kFusedLoss,  ///< cross-entropy in one kernel
  kFusedLossBackward,
  kNll,
  kNllParallel,  ///< of log-probabilities cut along the vocabulary
  kNllBackward,
  kLogSoftmaxBackward,
  kColumnSum,  ///< over batch and sequence: gradients of weight vectors
  kFill,       ///< writes a constant or an expanded statistic
  // Mixture of experts. A row is a token for one of the experts it chose.
  kHeadNorm,  ///< RMSNorm of each head of queries or keys
  kHeadNormBackward,
  kTopK,  ///< scores -> weights of the chosen experts, their indices
  kTopKBackward,
  kSortRows,         ///< indices -> the order of rows by expert, and tokens of each expert
  kPermute,          ///< tokens, order -> rows sorted by expert
  kPermuteBackward,  ///< gradients of rows, order -> gradients of tokens
  kArrange,          ///< rows by sending rank <-> by local expert, and back
  kGroupedLinear,    ///< one matrix product an expert over its rows
  kGroupedDgrad,
  kGroupedWgrad,
  kUnpermute,  ///< rows, weights, order -> tokens: the weighted sum over a token's rows
  kUnpermuteBackward,
  kRedistribute,  ///< a change of placement: a collective
};

/// Iteration space of an operator, which decides what may be fused with it.
enum class OpSpace : std::uint8_t {
  kPointwise,
  kRowReduction,     ///< reduces features
  kColumnReduction,  ///< reduces batch and sequence
  kFullReduction,
  kExtern,  ///< a library kernel or a collective: never fused
};

struct Operator {
  Fn fn = Fn::kCopy;
  OpSpace space = OpSpace::kPointwise;
  std::string_view name;
  boost::container::static_vector<TensorId, 8> inputs;
  boost::container::static_vector<TensorId, 4> outputs;
  /// Tensors that variables of the calling function keep alive until this operator has run.
  boost::container::static_vector<TensorId, 4> holds;
  /// What autograd keeps for the backward pass, as bit masks over inputs and outputs.
  std::uint8_t saves_inputs = 0;
  std::uint8_t saves_outputs = 0;
};

class OperatorGraph {
 public:
  using Graph =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Operator, TensorId>;

  TensorId add_tensor(const Tensor& tensor);
  /// Appends an operator in program order; edges come from the producers of its inputs.
  OpId add(const Operator& op);

  [[nodiscard]] const Tensor& operator[](TensorId id) const {
    return tensors_[static_cast<std::size_t>(id.index())];
  }
  [[nodiscard]] Tensor& operator[](TensorId id) {
    return tensors_[static_cast<std::size_t>(id.index())];
  }
  [[nodiscard]] const Operator& operator[](OpId id) const {
    return (*graph_)[static_cast<std::size_t>(id.index())];
  }
  [[nodiscard]] Operator& operator[](OpId id) {
    return (*graph_)[static_cast<std::size_t>(id.index())];
  }
  [[nodiscard]] int ops() const { return static_cast<int>(num_vertices(*graph_)); }
  [[nodiscard]] int tensors() const { return static_cast<int>(tensors_.size()); }
  [[nodiscard]] const Graph& graph() const { return *graph_; }

 private:
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();  // boost's graphs do not move
  std::vector<Tensor> tensors_;
};

/// A block of a model before it is placed: its forward operators, its input and output.
struct BlockGraph {
  OperatorGraph graph;
  TensorId input;   ///< hidden states or token ids
  TensorId output;  ///< hidden states or the loss
  std::vector<TensorId> parameters;
};

}  // namespace forerun

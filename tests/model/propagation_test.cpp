// The rule of each kind of operator on the tensor dimension: what lies where, and what is
// redistributed because of it.

#include <doctest/doctest.h>

#include "model/placed_graph.hpp"

using namespace forerun;

namespace {

constexpr Placement kR = Placement::replicate();
constexpr Placement kP = Placement::partial();
constexpr Placement kSeq = Placement::shard(1);
constexpr Placement kFeature = Placement::shard(2);
constexpr Placement kRows = Placement::shard(0);     // of a weight [out, in]
constexpr Placement kColumns = Placement::shard(1);  // of a weight [out, in]
constexpr MeshDim kTp = MeshDim::kTensor;

/// A graph on two tensor-parallel ranks to which single operators are added.
class Bench {
 public:
  explicit Bench(bool sequence_parallel = true) : graph_({2, 1, sequence_parallel}) {}

  TensorId tensor(Placement on_tp, Dims dims = {2, 8, 16}) {
    Tensor t;
    t.name = "t";
    t.dims = dims;
    return graph_.add_tensor(t, {{on_tp, kR}});
  }
  TensorId weight(Placement on_tp) { return tensor(on_tp, {16, 16, 1}); }

  /// Adds an operator with one output and returns that.
  TensorId apply(Fn fn, std::initializer_list<TensorId> inputs, OpSpace space = OpSpace::kExtern) {
    Operator op;
    op.fn = fn;
    op.space = space;
    op.inputs.assign(inputs.begin(), inputs.end());
    op.outputs = {tensor(kR, fn == Fn::kLinearWgrad ? Dims{16, 16, 1} : Dims{2, 8, 16})};
    last_ = graph_.add(op);
    return op.outputs[0];
  }
  TensorId pointwise(Fn fn, std::initializer_list<TensorId> inputs) {
    return apply(fn, inputs, OpSpace::kPointwise);
  }

  [[nodiscard]] Placement at(TensorId t) const { return graph_.layout(t)[kTp]; }
  /// Where the i-th input of the operator added last lies now.
  [[nodiscard]] Placement input(std::size_t i) const { return at(graph_[last_].inputs[i]); }
  /// Collectives in the graph, in order.
  [[nodiscard]] std::vector<CollectiveKind> collectives() const {
    std::vector<CollectiveKind> out;
    for (int i = 0; i < graph_.graph().ops(); ++i) {
      if (graph_[OpId(i)].fn != Fn::kRedistribute) continue;
      out.push_back(graph_.redistribution(OpId(i)).collective);
    }
    return out;
  }

 private:
  PlacedGraph graph_;
  OpId last_;
};

using Kinds = std::vector<CollectiveKind>;

}  // namespace

TEST_CASE("a column-parallel linear wants whole rows and gives cut features") {
  Bench b;
  CHECK(b.at(b.apply(Fn::kLinear, {b.tensor(kSeq), b.weight(kRows)})) == kFeature);
  CHECK(b.input(0) == kR);
  CHECK(b.collectives() == Kinds{CollectiveKind::kAllGather});
}

TEST_CASE("a row-parallel linear takes cut features and gives partial sums") {
  Bench b;
  CHECK(b.at(b.apply(Fn::kLinear, {b.tensor(kFeature), b.weight(kColumns)})) == kP);
  CHECK(b.collectives().empty());
}

TEST_CASE("the input gradient of a column-parallel linear is partial, of a row-parallel one cut") {
  Bench b;
  CHECK(b.at(b.apply(Fn::kLinearDgrad, {b.tensor(kFeature), b.weight(kRows)})) == kP);
  CHECK(b.at(b.apply(Fn::kLinearDgrad, {b.tensor(kR), b.weight(kColumns)})) == kFeature);
  CHECK(b.collectives().empty());
}

TEST_CASE("a weight gradient is cut as its weight, and partial where rows are cut") {
  Bench b;
  CHECK(b.at(b.apply(Fn::kLinearWgrad, {b.tensor(kFeature), b.tensor(kR)})) == kRows);
  CHECK(b.at(b.apply(Fn::kLinearWgrad, {b.tensor(kR), b.tensor(kFeature)})) == kColumns);
  CHECK(b.at(b.apply(Fn::kLinearWgrad, {b.tensor(kSeq), b.tensor(kSeq)})) == kP);
  CHECK(b.collectives().empty());
}

TEST_CASE("partial sums stay partial through sums and casts and are reduced by anything else") {
  Bench b;
  const TensorId p = b.tensor(kP), q = b.tensor(kP);
  CHECK(b.at(b.pointwise(Fn::kAdd, {p, q})) == kP);
  CHECK(b.at(b.pointwise(Fn::kCast, {p})) == kP);
  CHECK(b.collectives().empty());
  CHECK(b.at(b.pointwise(Fn::kSilu, {p})) == kSeq);
  CHECK(b.collectives() == Kinds{CollectiveKind::kReduceScatter});
}

TEST_CASE("without sequence parallelism partial sums are reduced to every rank") {
  Bench b(false);
  CHECK(b.at(b.pointwise(Fn::kSilu, {b.tensor(kP)})) == kR);
  CHECK(b.collectives() == Kinds{CollectiveKind::kAllReduce});
}

TEST_CASE("operands of a pointwise operator lie alike, a cut one deciding") {
  Bench b;
  CHECK(b.at(b.pointwise(Fn::kAdd, {b.tensor(kSeq), b.tensor(kP)})) == kSeq);
  CHECK(b.collectives() == Kinds{CollectiveKind::kReduceScatter});
  CHECK(b.at(b.pointwise(Fn::kMul, {b.tensor(kR), b.tensor(kFeature)})) == kFeature);
  CHECK(b.input(0) == kFeature);  // a local slice
}

TEST_CASE("an operand that is broadcast along the cut dimension stays whole") {
  Bench b;
  const TensorId weight = b.tensor(kR, {1, 1, 16});
  CHECK(b.at(b.pointwise(Fn::kMul, {b.tensor(kSeq), weight})) == kSeq);
  CHECK(b.input(1) == kR);
  CHECK(b.collectives().empty());
}

TEST_CASE("a statistic over cut features is a partial sum, over cut rows it is complete") {
  Bench b;
  CHECK(b.at(b.apply(Fn::kMean, {b.tensor(kFeature)}, OpSpace::kRowReduction)) == kP);
  CHECK(b.at(b.apply(Fn::kMean, {b.tensor(kSeq)}, OpSpace::kRowReduction)) == kSeq);
  CHECK(b.at(b.apply(Fn::kMax, {b.tensor(kSeq)}, OpSpace::kFullReduction)) == kP);
  CHECK(b.at(b.apply(Fn::kColumnSum, {b.tensor(kSeq)}, OpSpace::kColumnReduction)) == kP);
  CHECK(b.at(b.apply(Fn::kColumnSum, {b.tensor(kFeature)}, OpSpace::kColumnReduction)) == kFeature);
  CHECK(b.collectives().empty());
}

TEST_CASE("a norm sees whole features") {
  Bench b;
  const TensorId weight = b.tensor(kR, {1, 1, 16});
  CHECK(b.at(b.apply(Fn::kNorm, {b.tensor(kSeq), weight})) == kSeq);
  CHECK(b.collectives().empty());
  CHECK(b.at(b.apply(Fn::kNorm, {b.tensor(kFeature), weight})) == kR);
  CHECK(b.collectives() == Kinds{CollectiveKind::kAllGather});
}

TEST_CASE("a table cut by words gives partial embeddings") {
  Bench b;
  CHECK(b.at(b.apply(Fn::kEmbedding, {b.tensor(kR, {2, 8, 1}), b.weight(kRows)})) == kP);
  CHECK(b.at(b.apply(Fn::kEmbedding, {b.tensor(kSeq, {2, 8, 1}), b.weight(kR)})) == kSeq);
}

TEST_CASE("the softmax of the loss wants whole rows of logits") {
  Bench b;
  CHECK(b.at(b.apply(Fn::kLogSoftmax, {b.tensor(kFeature)})) == kR);
  CHECK(b.collectives() == Kinds{CollectiveKind::kAllGather});
}

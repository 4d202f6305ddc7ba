#include "model/placed_graph.hpp"

#include <doctest/doctest.h>

using namespace forerun;

namespace {

constexpr Placement kR = Placement::replicate();
constexpr Placement kP = Placement::partial();
constexpr Placement kSeq = Placement::shard(1);
constexpr Placement kFeature = Placement::shard(2);

Layout layout(Placement tp, Placement cp = kR) {
  return {{tp, cp}};
}

Tensor activation(Dims dims, DType dtype = DType::kBf16) {
  Tensor tensor;
  tensor.name = "x";
  tensor.dims = dims;
  tensor.dtype = dtype;
  return tensor;
}

}  // namespace

TEST_CASE("a rank holds its part of a cut tensor, rounded up") {
  PlacedGraph g({4, 2, true});
  const TensorId x = g.add_tensor(activation({3, 10, 6}), layout(kFeature, kSeq));
  CHECK(g.local_dims(x) == Dims{3, 5, 2});              // 10 / 2, ceil(6 / 4)
  CHECK(g.local_bytes(x) == 3 * 5 * 2 * 2);             // bf16: 2 bytes
  CHECK(g.group_bytes(x, MeshDim::kTensor) == 4 * 60);  // four ranks hold one each
  CHECK(g.group_bytes(x, MeshDim::kContext) == 2 * 60);
}

TEST_CASE("a sequence that both dimensions cut is cut by their product") {
  PlacedGraph g({2, 4, true});
  const TensorId x = g.add_tensor(activation({1, 64, 8}), g.boundary_layout());
  CHECK(g.local_dims(x) == Dims{1, 8, 8});
}

TEST_CASE("a partial tensor is as large as the whole on each rank") {
  PlacedGraph g({4, 1, false});
  const TensorId x = g.add_tensor(activation({1, 8, 8}, DType::kFp32), layout(kP));
  CHECK(g.local_bytes(x) == 8 * 8 * 4);
  CHECK(g.group_bytes(x, MeshDim::kTensor) == 8 * 8 * 4);
}

TEST_CASE(
    "activations between blocks are cut along the sequence by cp, and by tp with sequence "
    "parallelism") {
  CHECK(PlacedGraph({1, 1, true}).boundary_layout() == layout(kR));
  CHECK(PlacedGraph({2, 1, false}).boundary_layout() == layout(kR));
  CHECK(PlacedGraph({2, 1, true}).boundary_layout() == layout(kSeq));
  CHECK(PlacedGraph({2, 2, false}).boundary_layout() == layout(kR, kSeq));
  CHECK(PlacedGraph({2, 2, true}).boundary_layout() == layout(kSeq, kSeq));
}

TEST_CASE("parameters are cut by their style on the tensor dimension alone") {
  const PlacedGraph g({2, 2, true});
  CHECK(g.parameter_layout(ParameterStyle::kColumn) == layout(Placement::shard(0)));
  CHECK(g.parameter_layout(ParameterStyle::kVocabulary) == layout(Placement::shard(0)));
  CHECK(g.parameter_layout(ParameterStyle::kRow) == layout(Placement::shard(1)));
  CHECK(g.parameter_layout(ParameterStyle::kReplicated) == layout(kR));
  CHECK(PlacedGraph({1, 2, false}).parameter_layout(ParameterStyle::kRow) == layout(kR));
}

TEST_CASE("a redistributed copy is made once and reused") {
  PlacedGraph g({2, 1, true});
  const TensorId x = g.add_tensor(activation({1, 8, 8}), layout(kSeq));
  const TensorId whole = g.redistributed(x, MeshDim::kTensor, kR);
  CHECK(whole != x);
  CHECK(g.redistributed(x, MeshDim::kTensor, kR) == whole);
  CHECK(g.graph().ops() == 1);
  CHECK(g.source(whole) == x);
  CHECK(g.redistribution(g[whole].producer).collective == CollectiveKind::kAllGather);

  g.forget_copies();  // the backward pass gathers anew what was not saved
  CHECK(g.redistributed(x, MeshDim::kTensor, kR) != whole);
}

TEST_CASE("nothing is redistributed where it lies as asked or on one rank") {
  PlacedGraph g({2, 1, false});
  const TensorId x = g.add_tensor(activation({1, 8, 8}), layout(kR));
  CHECK(g.redistributed(x, MeshDim::kTensor, kR) == x);
  CHECK(g.redistributed(x, MeshDim::kContext, kSeq) == x);
  CHECK(g.graph().ops() == 0);
}

TEST_CASE("a change on both dimensions is one redistribution on each, back to the source") {
  PlacedGraph g({2, 2, true});
  const TensorId x = g.add_tensor(activation({1, 8, 8}), g.boundary_layout());
  const TensorId whole = g.redistributed(x, Layout{});
  CHECK(g.graph().ops() == 2);
  CHECK(g.layout(whole) == Layout{});
  CHECK(g.source(whole) == x);
}

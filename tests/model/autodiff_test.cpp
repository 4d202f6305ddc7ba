#include "model/autodiff.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/model/small_model.hpp"
#include "workloads/block_builder.hpp"

using namespace forerun;
using namespace forerun::test;

namespace {

constexpr Dims kRow{2, 8, 16};

int count_ops(const DifferentiatedBlock& block, Fn fn, bool backward) {
  const int begin = backward ? block.forward_ops : 0;
  const int end = backward ? block.graph.graph().ops() : block.forward_ops;
  int n = 0;
  for (int i = begin; i < end; ++i)
    n += block.graph[OpId(i)].fn == fn ? 1 : 0;
  return n;
}

DifferentiatedBlock differentiated(const BlockRequest& r) {
  return differentiate(build_block(r.kind, small_model(), r.options), r.degrees, r.autodiff);
}

/// Every block of a model over meshes and ways to run it, as far as these change its operators.
std::vector<BlockRequest> every_block() {
  std::vector<BlockRequest> out = decoder_requests(all_meshes());
  for (const MeshDegrees& degrees : all_meshes()) {
    out.push_back(request(BlockKind::kEmbedding, degrees));
    out.push_back(request(BlockKind::kHead, degrees));
    if (degrees.tp == 1) continue;
    out.push_back(request(BlockKind::kHead, degrees));
    out.back().options.parallel_loss = true;
  }
  return out;
}

}  // namespace

TEST_CASE("a linear has one product for each of its gradients") {
  BlockBuilder b({});
  const TensorId x = b.input("x", kRow, DType::kBf16);
  const TensorId w = b.weight("w", 24, 16, ParameterStyle::kColumn);
  const DifferentiatedBlock block = differentiate(b.finish(x, b.linear(x, w, "w")), {}, {});
  REQUIRE(block.graph.graph().ops() == 3);
  const Operator& dgrad = block.graph[OpId(1)];
  const Operator& wgrad = block.graph[OpId(2)];
  CHECK(dgrad.fn == Fn::kLinearDgrad);  // dx = dy . w
  CHECK(dgrad.inputs[0] == block.output_gradient);
  CHECK(block.graph[dgrad.outputs[0]].dims == kRow);
  CHECK(wgrad.fn == Fn::kLinearWgrad);  // dw = dy^T . x
  CHECK(wgrad.inputs[1] == block.input);
  CHECK(block.graph[wgrad.outputs[0]].dims == Dims{24, 16, 1});
  CHECK(block.input_gradient == dgrad.outputs[0]);
}

TEST_CASE("a tensor that is used twice sums its gradients") {
  // y = x + silu(x): dx = dy + silu'(x) dy, which is one add kernel.
  BlockBuilder b({});
  const TensorId x = b.input("x", kRow, DType::kBf16);
  const TensorId y = b.add(x, b.pointwise(Fn::kSilu, x, "silu", true), "add");
  const DifferentiatedBlock block = differentiate(b.finish(x, y), {}, {});
  CHECK(count_ops(block, Fn::kAdd, true) == 1);
  CHECK(count_ops(block, Fn::kSilu, true) == 1);
  CHECK(block.graph[block.graph[block.input_gradient].producer].fn == Fn::kAdd);
}

TEST_CASE("a cast passes its gradient back in the input's type") {
  BlockBuilder b({});
  const TensorId x = b.input("x", kRow, DType::kBf16);
  const TensorId wide = b.pointwise(Fn::kGelu, b.cast(x, DType::kFp32, "wide"), "gelu", true);
  const DifferentiatedBlock block =
      differentiate(b.finish(x, b.cast(wide, DType::kBf16, "narrow")), {}, {});
  CHECK(block.graph[block.input_gradient].dtype == DType::kBf16);
  // dy is widened, goes through the activation in fp32, and is narrowed.
  REQUIRE(block.graph.graph().ops() == 6);
  CHECK(block.graph[block.graph[OpId(3)].outputs[0]].dtype == DType::kFp32);
  CHECK(block.graph[block.graph[OpId(4)].outputs[0]].dtype == DType::kFp32);
}

TEST_CASE("the gradient of a weight vector is summed over rows") {
  BlockBuilder b({});
  const TensorId x = b.input("x", kRow, DType::kBf16);
  const TensorId w = b.weight_vector("w", 16);
  const DifferentiatedBlock block = differentiate(b.finish(x, b.mul(x, w, "scale")), {}, {});
  CHECK(count_ops(block, Fn::kColumnSum, true) == 1);
  REQUIRE(block.parameter_gradients.size() == 1);
  CHECK(block.graph[block.parameter_gradients[0].gradient].dims == Dims{1, 1, 16});
}

TEST_CASE("a decoder block has twice as many products backward as forward") {
  const DifferentiatedBlock block = differentiated(request(BlockKind::kDecoder));
  CHECK(count_ops(block, Fn::kLinear, false) == 7);  // q, k, v, o and three of the gated MLP
  CHECK(count_ops(block, Fn::kLinearDgrad, true) == 7);
  CHECK(count_ops(block, Fn::kLinearWgrad, true) == 7);
  CHECK(count_ops(block, Fn::kAttention, false) == 1);
  CHECK(count_ops(block, Fn::kAttentionBackward, true) == 1);
  CHECK(block.parameter_gradients.size() == 7 + 2);  // and the weights of two norms
}

TEST_CASE("tokens have no gradient and a loss has none to begin with") {
  const DifferentiatedBlock embedding = differentiated(request(BlockKind::kEmbedding));
  CHECK(!embedding.input_gradient.valid());
  CHECK(embedding.output_gradient.valid());
  const DifferentiatedBlock head = differentiated(request(BlockKind::kHead));
  CHECK(head.input_gradient.valid());
  CHECK(!head.output_gradient.valid());
}

TEST_CASE("gradients lie and measure as what they are gradients of") {
  for (const BlockRequest& r : every_block()) {
    CAPTURE(describe(r));
    const DifferentiatedBlock block = differentiated(r);
    const PlacedGraph& g = block.graph;
    for (const ParameterGradient& p : block.parameter_gradients) {
      CHECK(g[p.gradient].dims == g[p.parameter].dims);
      CHECK(g.layout(p.gradient)[MeshDim::kTensor] == g.layout(p.parameter)[MeshDim::kTensor]);
    }
    if (!block.input_gradient.valid()) continue;
    CHECK(g.local_dims(block.input_gradient) == g.local_dims(block.input));
    CHECK(g.layout(block.input_gradient) == g.boundary_layout());
  }
}

TEST_CASE("every operator comes after what makes its inputs") {
  for (const BlockRequest& r : every_block()) {
    CAPTURE(describe(r));
    const DifferentiatedBlock block = differentiated(r);
    bool ordered = true, placed = true;
    for (int i = 0; i < block.graph.graph().ops(); ++i) {
      for (const TensorId input : block.graph[OpId(i)].inputs) {
        const OpId producer = block.graph[input].producer;
        ordered &= !producer.valid() || producer.index() < i;
      }
      // What a cut dimension is cut into has no rest.
      for (const TensorId output : block.graph[OpId(i)].outputs) {
        placed &= block.graph.local_bytes(output) > 0;
      }
    }
    CHECK(ordered);
    CHECK(placed);
  }
}

#include "workloads/blocks.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/plans.hpp"

namespace forerun {
namespace {

constexpr BlockOptions kEager{.batch = 2, .sequence = 4096};

ModelSpec llama() {
  return load_model(test::source_data(), "llama3-8b", {}, "model");
}

BlockGraph block(BlockKind kind, const BlockOptions& options = kEager,
                 const ModelSpec& model = llama()) {
  return build_block(kind, model, options);
}

int count(const BlockGraph& b, Fn fn) {
  int n = 0;
  for (int i = 0; i < b.graph.ops(); ++i)
    n += b.graph[OpId(i)].fn == fn ? 1 : 0;
  return n;
}

std::int64_t parameters(const BlockGraph& b) {
  std::int64_t n = 0;
  for (const TensorId id : b.parameters)
    n += b.graph[id].elements();
  return n;
}

/// Products of all linear layers: 2 x rows x in x out each.
double linear_flops(const BlockGraph& b) {
  double flops = 0;
  for (int i = 0; i < b.graph.ops(); ++i) {
    const Operator& op = b.graph[OpId(i)];
    if (op.fn != Fn::kLinear) continue;
    const Dims& out = b.graph[op.outputs[0]].dims;
    const Dims& in = b.graph[op.inputs[0]].dims;
    flops += 2.0 * static_cast<double>(out[0] * out[1] * out[2]) * static_cast<double>(in[2]);
  }
  return flops;
}

/// Blocks of every kind in the ways that stacks and plans ask for them.
std::vector<BlockGraph> many_blocks() {
  ModelSpec plain = llama();
  plain.gated_mlp = false;
  plain.kv_heads = plain.heads;
  std::vector<BlockGraph> out;
  for (const BlockKind kind : {BlockKind::kEmbedding, BlockKind::kDecoder, BlockKind::kHead}) {
    for (const ModelSpec& model : {llama(), plain}) {
      for (const bool fp8 : {false, true}) {
        for (const bool fused : {false, true}) {
          for (const int cp : {1, 2}) {
            BlockOptions o = kEager;
            o.fp8 = fp8;
            o.fp8_weights = !fused;
            o.context_parallel = cp;
            o.parallel_loss = cp == 2;
            o.modules = {fused, fused, !fused, fused};
            out.push_back(block(kind, o, model));
          }
        }
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("operators stand in program order and edges come from what made each input") {
  for (const BlockGraph& b : many_blocks()) {
    const OperatorGraph& g = b.graph;
    std::size_t made_inputs = 0;
    for (int i = 0; i < g.ops(); ++i) {
      for (const TensorId id : g[OpId(i)].inputs) {
        CHECK(g[id].producer.index() < i);
        made_inputs += g[id].producer.valid() ? 1 : 0;
      }
      for (const TensorId id : g[OpId(i)].outputs)
        CHECK(g[id].producer == OpId(i));
    }
    CHECK(num_edges(g.graph()) == made_inputs);
    CHECK(g[b.output].producer.index() == g.ops() - 1);
    CHECK_FALSE(g[b.input].producer.valid());
  }
}

TEST_CASE("every tensor has elements, and what is saved and held exists") {
  for (const BlockGraph& b : many_blocks()) {
    const OperatorGraph& g = b.graph;
    for (int t = 0; t < g.tensors(); ++t)
      CHECK(g[TensorId(t)].elements() > 0);
    for (int i = 0; i < g.ops(); ++i) {
      const Operator& op = g[OpId(i)];
      CHECK((op.saves_inputs >> op.inputs.size()) == 0);
      CHECK((op.saves_outputs >> op.outputs.size()) == 0);
      for (const TensorId held : op.holds)
        CHECK(g[held].producer.index() < i);
    }
  }
}

TEST_CASE("blocks hold the parameters that the model counts") {
  const ParameterCount c = count_parameters(llama());
  CHECK(parameters(block(BlockKind::kEmbedding)) == c.embedding);
  CHECK(parameters(block(BlockKind::kDecoder)) == c.layer);
  CHECK(parameters(block(BlockKind::kHead)) == c.final_norm + c.head);
  ModelSpec plain = llama();
  plain.gated_mlp = false;
  plain.head_dim = 96;
  CHECK(parameters(block(BlockKind::kDecoder, kEager, plain)) == count_parameters(plain).layer);
}

TEST_CASE("the linear layers of a block do two FLOPs a parameter and token") {
  const double tokens = 2.0 * 4096;
  const ParameterCount c = count_parameters(llama());
  const auto matrices = static_cast<double>(c.layer - 2 * 4096);  // less the norms
  CHECK(linear_flops(block(BlockKind::kDecoder)) == 2 * tokens * matrices);
  CHECK(linear_flops(block(BlockKind::kHead)) == 2 * tokens * static_cast<double>(c.head));
}

TEST_CASE("an eager decoder block of torchtitan launches 34 operators") {
  const BlockGraph b = block(BlockKind::kDecoder);
  // Two RMSNorms of 7 (float, square, mean, rsqrt, times, type_as, times weight), 7 linear layers,
  // 2 rotaries of 3 (float, complex product, type_as), 2 repeat_kv, attention, 2 residuals, silu,
  // gate.
  CHECK(b.graph.ops() == 2 * 7 + 7 + 2 * 3 + 2 + 1 + 2 + 1 + 1);
  CHECK(count(b, Fn::kLinear) == 7);
  CHECK(count(b, Fn::kComplexMul) == 2);
  CHECK(count(b, Fn::kExpandHeads) == 2);
  CHECK(count(b, Fn::kAttention) == 1);
  CHECK(count(b, Fn::kAdd) == 2);
  CHECK(count(b, Fn::kMean) == 2);
  CHECK(count(b, Fn::kSilu) == 1);
  CHECK(b.graph[b.output].dims == Dims{2, 4096, 4096});
  CHECK(b.graph[b.output].dtype == DType::kBf16);
}

TEST_CASE("key and value heads are repeated only where there are fewer and the stack does it") {
  ModelSpec full = llama();
  full.kv_heads = full.heads;
  CHECK(count(block(BlockKind::kDecoder, kEager, full), Fn::kExpandHeads) == 0);
  BlockOptions grouped = kEager;
  grouped.modules.expand_kv = false;
  CHECK(count(block(BlockKind::kDecoder, grouped), Fn::kExpandHeads) == 0);
}

TEST_CASE("fused modules launch one operator each") {
  BlockOptions fused = kEager;
  fused.modules.fused_norm = fused.modules.fused_rotary = true;
  const BlockGraph b = block(BlockKind::kDecoder, fused);
  CHECK(b.graph.ops() == 34 - 2 * 6 - 2 * 2);
  CHECK(count(b, Fn::kNorm) == 2);
  CHECK(count(b, Fn::kRotary) == 2);
}

TEST_CASE("a plain MLP has one linear layer and one product fewer") {
  ModelSpec plain = llama();
  plain.gated_mlp = false;
  const BlockGraph b = block(BlockKind::kDecoder, kEager, plain);
  CHECK(count(b, Fn::kLinear) == 6);
  CHECK(count(b, Fn::kGelu) == 1);
  CHECK(b.graph.ops() == 34 - 2);
}

TEST_CASE("fp8 quantises the inputs of linear layers, and weights where they come unquantised") {
  // A cast is 6 operators: abs, amax, float, scale, clamp, cast.
  BlockOptions o = kEager;
  o.fp8 = true;
  CHECK(block(BlockKind::kDecoder, o).graph.ops() == 34 + 7 * 6);
  o.fp8_weights = false;
  CHECK(block(BlockKind::kDecoder, o).graph.ops() == 34 + 2 * 7 * 6);
  // Once a tensor: the two norms, the attention's output, the MLP's product; and seven weights.
  o.modules.quantise_once = true;
  CHECK(block(BlockKind::kDecoder, o).graph.ops() == 34 + 4 * 6 + 7 * 6);
  o.fp8_weights = true;
  CHECK(block(BlockKind::kHead, o).graph.ops() == block(BlockKind::kHead).graph.ops());
}

TEST_CASE("context parallelism copies keys and values before they are gathered") {
  BlockOptions o = kEager;
  o.context_parallel = 2;
  CHECK(count(block(BlockKind::kDecoder), Fn::kCopy) == 0);
  CHECK(count(block(BlockKind::kDecoder, o), Fn::kCopy) == 2);
}

TEST_CASE("the embedding looks token ids up and the head ends in one loss") {
  const BlockGraph e = block(BlockKind::kEmbedding);
  CHECK(e.graph.ops() == 1);
  CHECK(e.graph[e.input].dtype == DType::kInt64);
  CHECK_FALSE(e.graph[e.input].differentiable);
  CHECK(e.graph[e.output].dims == Dims{2, 4096, 4096});
  for (const bool parallel : {false, true}) {
    BlockOptions o = kEager;
    o.parallel_loss = parallel;
    const BlockGraph h = block(BlockKind::kHead, o);
    CHECK(h.graph[h.output].elements() == 1);
    CHECK(count(h, Fn::kNll) == (parallel ? 0 : 1));
    CHECK(count(h, Fn::kNllParallel) == (parallel ? 1 : 0));
    CHECK(count(h, Fn::kLogSoftmax) == (parallel ? 0 : 1));
  }
}

TEST_CASE("the loss holds the logits in both precisions until it has run") {
  // F.cross_entropy(logits.float(), labels): the caller's logits and the function's argument live.
  const BlockGraph h = block(BlockKind::kHead);
  const Operator& loss = h.graph[h.graph[h.output].producer];
  REQUIRE(loss.holds.size() == 2);
  const Dims logits{2, 4096, 128256};
  CHECK(h.graph[loss.holds[0]].dims == logits);
  CHECK(h.graph[loss.holds[0]].dtype == DType::kFp32);
  CHECK(h.graph[loss.holds[1]].dims == logits);
  CHECK(h.graph[loss.holds[1]].dtype == DType::kBf16);
}

}  // namespace forerun

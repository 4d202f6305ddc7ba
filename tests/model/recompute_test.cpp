#include "model/recompute.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "tests/model/small_model.hpp"
#include "workloads/block_builder.hpp"

using namespace forerun;
using namespace forerun::test;

namespace {

struct Split {
  DifferentiatedBlock block;
  BlockPasses passes;

  /// Bytes of saved tensors by name; tensors of one name add up.
  [[nodiscard]] std::map<std::string, std::int64_t> saved() const {
    std::map<std::string, std::int64_t> out;
    for (std::size_t t = 0; t < passes.saved.size(); ++t) {
      if (!passes.saved[t]) continue;
      const TensorId id(static_cast<std::int32_t>(t));
      out[std::string(block.graph[id].name)] += block.graph.local_bytes(id);
    }
    return out;
  }
  [[nodiscard]] std::int64_t saved_bytes() const {
    std::int64_t sum = 0;
    for (const auto& [name, bytes] : saved())
      sum += bytes;
    return sum;
  }
  /// Names of operators that run a second time.
  [[nodiscard]] std::multiset<std::string> recomputed() const {
    std::multiset<std::string> out;
    for (const Execution& e : passes.backward) {
      if (e.recompute) out.emplace(block.graph[e.op].name);
    }
    return out;
  }
};

Split split(const BlockRequest& r) {
  Split out{differentiate(build_block(r.kind, small_model(), r.options), r.degrees, r.autodiff),
            {}};
  out.passes = split_passes(out.block, r.recompute, r.compiled, r.save_list);
  return out;
}

/// A decoder block of fused modules, eager, under a policy.
BlockRequest fused_modules(Recompute policy) {
  BlockRequest r = request(BlockKind::kDecoder);
  r.options.modules.fused_norm = r.options.modules.fused_rotary = true;
  r.recompute = policy;
  return r;
}

// Hidden states in bf16; the MLP is three times as wide, keys and values half (repeated: as wide).
constexpr std::int64_t kH = kBatch * kSequence * 256 * 2;
constexpr std::int64_t kLse = kBatch * kSequence * 8 * 4;  // of 8 heads, fp32

using Names = std::map<std::string, std::int64_t>;

}  // namespace

TEST_CASE("a linear saves its input and no weight") {
  BlockBuilder b({});
  const TensorId x = b.input("x", {2, 8, 16}, DType::kBf16);
  const TensorId w = b.weight("w", 24, 16, ParameterStyle::kColumn);
  const DifferentiatedBlock block = differentiate(b.finish(x, b.linear(x, w, "w")), {}, {});
  const BlockPasses passes = split_passes(block, Recompute::kNone, false, {});
  CHECK(passes.saved[static_cast<std::size_t>(block.input.index())]);
  CHECK(std::count(passes.saved.begin(), passes.saved.end(), true) == 1);
}

TEST_CASE("without recompute autograd saves what derivatives read") {
  // PyTorch's derivatives.yaml: a linear its input, a norm its input, silu its input, a product
  // both factors, attention q, k, v, its output and log-sum-exp; a sum nothing.
  const Names expected{{"x", kH},
                       {"attention_norm", kH},
                       {"rotary.q", kH},
                       {"repeat_kv.k", kH},
                       {"repeat_kv.v", kH},
                       {"attention.out", kH},
                       {"attention.lse", kLse},
                       {"attention.residual", kH},
                       {"ffn_norm", kH},
                       {"w1", 3 * kH},
                       {"silu", 3 * kH},
                       {"w3", 3 * kH},
                       {"silu.mul", 3 * kH}};
  CHECK(split(fused_modules(Recompute::kNone)).saved() == expected);
}

TEST_CASE("full recompute saves the input of the block and runs all but its end again") {
  const Split s = split(fused_modules(Recompute::kFull));
  CHECK(s.saved() == Names{{"x", kH}});
  // The forward pass stops at the last result that the backward pass reads, the input of w2
  // (torch.utils.checkpoint's early stop): w2 and the residual behind it do not run again.
  std::multiset<std::string> expected;
  for (const Execution& e : s.passes.forward)
    expected.emplace(s.block.graph[e.op].name);
  expected.erase("w2");
  expected.erase("mlp.residual");
  CHECK(s.recomputed() == expected);
}

TEST_CASE("selective recompute of attention keeps all but the core's results") {
  const Split none = split(fused_modules(Recompute::kNone));
  const Split core = split(fused_modules(Recompute::kSelectiveAttention));
  Names expected = none.saved();
  expected.erase("attention.out");
  expected.erase("attention.lse");
  CHECK(core.saved() == expected);
  CHECK(core.recomputed() == std::multiset<std::string>{"attention"});
}

TEST_CASE("per-operator recompute keeps every second product and attention") {
  // torchtitan counts matmuls and keeps the 1st, 3rd, 5th and 7th of wq, wk, wv, wo, w1, w3, w2.
  const Split s = split(fused_modules(Recompute::kSelectiveOp));
  const Names expected{
      {"x", kH},      {"wq", kH}, {"wv", kH / 2}, {"attention.out", kH}, {"attention.lse", kLse},
      {"w1", 3 * kH}, {"w2", kH}};
  CHECK(s.saved() == expected);
  const std::multiset<std::string> again = s.recomputed();
  for (const char* kept : {"wq", "wv", "attention", "w1", "w2"})
    CHECK(again.count(kept) == 0);
  for (const char* rerun : {"wk", "wo", "w3", "silu", "silu.mul"})
    CHECK(again.count(rerun) == 1);
}

TEST_CASE("the save list may keep every product, or drop attention and reduce-scatters") {
  BlockRequest r = request(BlockKind::kDecoder, {2, 1, true});
  r.recompute = Recompute::kSelectiveOp;
  r.save_list = {1, false, false};
  const std::multiset<std::string> again = split(r).recomputed();
  CHECK(again.count("attention") == 1);
  for (const char* product : {"wq", "wk", "wv", "w1", "w3", "w2"})
    CHECK(again.count(product) == 0);
  // The reduce-scatter behind wo bears the name of what it moves.
  CHECK(again.count("wo") == 1);
  r.save_list.reduce_scatter = true;
  CHECK(split(r).recomputed().count("wo") == 0);
}

TEST_CASE("the more a policy recomputes the less it saves") {
  for (const bool compiled : {false, true}) {
    for (const MeshDegrees& degrees : all_meshes()) {
      BlockRequest r = request(BlockKind::kDecoder, degrees);
      r.compiled = compiled;
      const auto saved = [&r](Recompute policy) {
        r.recompute = policy;
        return split(r).saved_bytes();
      };
      CAPTURE(describe(r));
      CHECK(saved(Recompute::kFull) < saved(Recompute::kSelectiveOp));
      CHECK(saved(Recompute::kSelectiveOp) < saved(Recompute::kNone));
      // A compiler recomputes more by itself; with cp the core reads gathered keys and values.
      if (compiled || degrees.cp > 1) continue;
      CHECK(saved(Recompute::kSelectiveAttention) < saved(Recompute::kNone));
    }
  }
}

TEST_CASE("a compiler recomputes fusible operators alone, and saves less for it") {
  BlockRequest r = request(BlockKind::kDecoder, {2, 1, true});
  const std::int64_t eager = split(r).saved_bytes();
  r.compiled = true;
  const Split s = split(r);
  CHECK(s.saved_bytes() < eager);
  for (const Execution& e : s.passes.backward) {
    if (e.recompute) CHECK(s.block.graph[e.op].space != OpSpace::kExtern);
  }
}

TEST_CASE("the backward pass finds everything it reads") {
  std::vector<BlockRequest> all = decoder_requests(all_meshes());
  all.push_back(request(BlockKind::kHead, {2, 1, true}));
  all.push_back(request(BlockKind::kEmbedding, {2, 1, true}));
  for (const BlockRequest& r : all) {
    CAPTURE(describe(r));
    const Split s = split(r);
    std::vector<bool> there = s.passes.saved;
    for (std::size_t t = 0; t < there.size(); ++t) {
      const TensorId id(static_cast<std::int32_t>(t));
      const Tensor& tensor = s.block.graph[id];
      const bool given = tensor.parameter != ParameterStyle::kNone || !tensor.differentiable;
      if (id == s.block.output_gradient || (given && !tensor.producer.valid())) there[t] = true;
    }
    std::set<int> first_runs;
    bool found = true, once = true;
    for (const Execution& e : s.passes.backward) {
      const bool forward = e.op.index() < s.block.forward_ops;
      once &= forward == e.recompute && first_runs.insert(e.op.index()).second;
      for (const TensorId input : s.block.graph[e.op].inputs) {
        found &= there[static_cast<std::size_t>(input.index())];
      }
      for (const TensorId output : s.block.graph[e.op].outputs) {
        there[static_cast<std::size_t>(output.index())] = true;
      }
    }
    CHECK(found);
    CHECK(once);
    // Each backward operator runs.
    const int backward = s.block.graph.graph().ops() - s.block.forward_ops;
    CHECK(static_cast<int>(first_runs.size() - s.recomputed().size()) == backward);
  }
}

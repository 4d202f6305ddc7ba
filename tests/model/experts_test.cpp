// Blocks with experts: work, bytes that travel, parameters, against closed forms.

#include <doctest/doctest.h>

#include <cmath>

#include "model/block_kernels.hpp"
#include "model/cost/gemm.hpp"
#include "tests/model/small_model.hpp"

using namespace forerun;
using namespace forerun::test;

namespace {

constexpr std::int64_t kTokens = kBatch * kSequence;
constexpr MeshDim kEp = MeshDim::kExpert;
constexpr auto kAllToAll = CollectiveKind::kAllToAll;

ModelSpec experts_model() {
  ModelSpec model = small_model();
  model.experts = 16;
  model.top_k = 4;
  model.expert_ffn = 192;
  return model;
}

struct ExpertMesh {
  int ep = 1, tp = 1, cp = 1;
  bool cut = false;  // experts over tp
};

BlockRequest moe_request(const ExpertMesh& mesh) {
  BlockRequest r = request(BlockKind::kMoeDecoder, {mesh.tp, mesh.cp, mesh.tp > 1, mesh.ep});
  r.options.expert_parallel = mesh.ep;
  r.options.experts_cut = mesh.cut || (mesh.ep == 1 && mesh.tp > 1);
  return r;
}

const std::vector<ExpertMesh>& expert_meshes() {
  static const std::vector<ExpertMesh> meshes{{1, 1, 1}, {4, 1, 1},       {16, 1, 1}, {1, 2, 1},
                                              {4, 2, 1}, {4, 2, 1, true}, {4, 1, 2},  {8, 2, 2}};
  return meshes;
}

int all_to_alls(const std::vector<Kernel>& kernels, std::int64_t bytes) {
  return count(kernels, kAllToAll, kEp, bytes);
}

double expert_flops(const std::vector<Kernel>& kernels) {
  std::vector<Kernel> grouped;
  for (const Kernel& k : kernels) {
    if (k.name.starts_with("experts.")) grouped.push_back(k);
  }
  return gemm_flops(grouped);
}

}  // namespace

TEST_CASE("experts compute top_k MLPs a token, and twice that backward") {
  const ModelSpec model = experts_model();
  const double weights = 3.0 * 256 * 192 * 4;  // of the experts that a token meets
  for (const ExpertMesh& mesh : expert_meshes()) {
    CAPTURE(mesh.ep);
    CAPTURE(mesh.tp);
    CAPTURE(mesh.cp);
    const BlockKernels block = block_kernels(model, moe_request(mesh));
    const double rank = 1.0 / (mesh.tp * mesh.cp);
    CHECK(expert_flops(block.forward) == doctest::Approx(2 * kTokens * weights * rank));
    CHECK(expert_flops(block.backward) == doctest::Approx(4 * kTokens * weights * rank));
  }
}

TEST_CASE("one expert that every token uses is a dense MLP and a router") {
  ModelSpec one = experts_model(), dense = small_model();
  one.experts = one.top_k = 1;
  one.expert_ffn = dense.ffn_hidden;
  const BlockKernels moe = block_kernels(one, moe_request({}));
  const BlockKernels plain = block_kernels(dense, request(BlockKind::kDecoder));
  const double router = 2.0 * kTokens * 256;
  CHECK(gemm_flops(moe.forward) == doctest::Approx(gemm_flops(plain.forward) + router));
  CHECK(gemm_flops(moe.backward) == doctest::Approx(gemm_flops(plain.backward) + 2 * router));
  CHECK(moe.parameter_count == plain.parameter_count + 256);
}

TEST_CASE("every token travels to its experts and back, in both passes") {
  // Rows of a rank: its tokens times top_k, bf16. Of an all-to-all (ep - 1) / ep leaves the rank.
  const ModelSpec model = experts_model();
  for (const ExpertMesh& mesh : expert_meshes()) {
    CAPTURE(mesh.ep);
    CAPTURE(mesh.tp);
    CAPTURE(mesh.cp);
    CAPTURE(mesh.cut);
    const BlockKernels block = block_kernels(model, moe_request(mesh));
    const std::int64_t rows = kTokens * 4 / (mesh.tp * mesh.cp), bytes = rows * 256 * 2;
    const int wanted = mesh.ep > 1 ? 2 : 0;
    CHECK(all_to_alls(block.forward, bytes) == wanted);
    CHECK(all_to_alls(block.backward, bytes) == wanted);
    int all = 0;
    for (const auto* pass : {&block.forward, &block.backward}) {
      for (const Kernel& k : collectives(*pass))
        all += k.comm.collective == kAllToAll ? 1 : 0;
    }
    CHECK(all == 2 * wanted);
  }
}

TEST_CASE("experts that are cut over tp gather rows before and scatter sums behind") {
  const ModelSpec model = experts_model();
  const BlockKernels cut = block_kernels(model, moe_request({4, 2, 1, true}));
  const BlockKernels whole = block_kernels(model, moe_request({4, 2, 1}));
  const std::int64_t rows = kTokens * 4 * 256 * 2;  // of both tp ranks
  const auto tp = [&](const BlockKernels& b, CollectiveKind kind) {
    return count(b.forward, kind, MeshDim::kTensor, rows);
  };
  CHECK(tp(cut, CollectiveKind::kAllGather) == 1);
  CHECK(tp(cut, CollectiveKind::kReduceScatter) == 1);
  CHECK(tp(whole, CollectiveKind::kAllGather) == 0);
  CHECK(tp(whole, CollectiveKind::kReduceScatter) == 0);
  // Without an expert group tokens are gathered before they are routed.
  const BlockKernels local = block_kernels(model, moe_request({1, 2, 1}));
  CHECK(tp(local, CollectiveKind::kAllGather) == 0);
  CHECK(count(local.forward, CollectiveKind::kAllGather, MeshDim::kTensor, kTokens * 256 * 2) == 2);
}

TEST_CASE("a rank holds its share of the experts and all of the rest") {
  const ModelSpec model = experts_model();
  const std::int64_t all = 16LL * 3 * 256 * 192;
  for (const ExpertMesh& mesh : expert_meshes()) {
    const BlockRequest r = moe_request(mesh);
    const BlockKernels block = block_kernels(model, r);
    const std::int64_t share = all / mesh.ep / (r.options.experts_cut ? mesh.tp : 1);
    CHECK(block.expert_count == share);
    CHECK(block.expert_gathered_bytes == 2 * share);
    // Attention's matrices are cut by tp; router and norms are whole.
    CHECK(block.parameter_count - share == 2 * 256 * (256 + 128) / mesh.tp + 256 * 16 + 2 * 256);
  }
  const BlockKernels whole = block_kernels(model, moe_request({}));
  CHECK(whole.parameter_count == count_parameters(model).layer);
}

TEST_CASE("shared experts are a dense MLP beside the routed ones") {
  ModelSpec model = experts_model();
  const double routed = gemm_flops(block_kernels(model, moe_request({4, 1, 1})).forward);
  model.shared_experts = 2;
  const BlockKernels block = block_kernels(model, moe_request({4, 1, 1}));
  CHECK(gemm_flops(block.forward) == doctest::Approx(routed + 2.0 * kTokens * 3 * 256 * 2 * 192));
  CHECK(block.expert_count == 4 * 3 * 256 * 192);  // shared ones are sharded like the rest
}

TEST_CASE("queries and keys normalised by head have a weight vector each") {
  ModelSpec model = experts_model();
  model.qk_norm = true;
  CHECK(block_kernels(model, moe_request({})).parameter_count == count_parameters(model).layer);
  ModelSpec dense = small_model();
  dense.qk_norm = true;
  for (const MeshDegrees& degrees : all_meshes()) {
    const BlockKernels with = block_kernels(dense, request(BlockKind::kDecoder, degrees));
    const BlockKernels without =
        block_kernels(small_model(), request(BlockKind::kDecoder, degrees));
    CHECK(with.parameter_count == without.parameter_count + 2 * 32);
    CHECK(with.forward.size() == without.forward.size() + 2);
  }
}

TEST_CASE("imbalance lengthens what the fullest rank gets") {
  const ModelSpec model = experts_model();
  BlockRequest r = moe_request({4, 1, 1});
  const double even = expert_flops(block_kernels(model, r).forward);
  r.options.imbalance = 1.5;
  CHECK(expert_flops(block_kernels(model, r).forward) == doctest::Approx(1.5 * even));
  r = moe_request({1, 1, 1});
  r.options.imbalance = 1.5;  // one rank has all experts
  CHECK(expert_flops(block_kernels(model, r).forward) == doctest::Approx(even));
}

TEST_CASE("the host waits for token counts once a dispatch, and where experts are elsewhere") {
  const auto waits = [](const std::vector<Kernel>& kernels) {
    int n = 0;
    for (const Kernel& k : kernels)
      n += k.host_waits ? 1 : 0;
    return n;
  };
  BlockRequest r = moe_request({4, 1, 1});
  CHECK(waits(block_kernels(experts_model(), r).forward) == 1);
  CHECK(waits(block_kernels(experts_model(), r).backward) == 0);
  r.recompute = Recompute::kFull;
  CHECK(waits(block_kernels(experts_model(), r).backward) == 1);
  CHECK(waits(block_kernels(experts_model(), moe_request({})).forward) == 0);
}

TEST_CASE("selective recompute keeps what has travelled") {
  BlockRequest r = moe_request({4, 1, 1});
  r.recompute = Recompute::kSelectiveOp;
  const BlockKernels block = block_kernels(experts_model(), r);
  int again = 0;
  for (const Kernel& k : collectives(block.backward))
    again += k.recompute ? 1 : 0;
  CHECK(again == 0);
  r.recompute = Recompute::kFull;
  for (const Kernel& k : collectives(block_kernels(experts_model(), r).backward))
    again += k.recompute ? 1 : 0;
  CHECK(again == 2);
}

TEST_CASE("blocks with experts can run in every way a plan can ask for") {
  ModelSpec model = experts_model();
  model.shared_experts = 1;
  model.qk_norm = true;
  for (const ExpertMesh& mesh : expert_meshes()) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelectiveAttention,
                                      Recompute::kSelectiveOp, Recompute::kFull}) {
      for (int bits = 0; bits < 8; ++bits) {
        BlockRequest r = moe_request(mesh);
        r.recompute = recompute;
        r.compiled = (bits & 1) != 0;
        r.options.fp8 = (bits & 2) != 0;
        r.options.modules.quantise_once = r.compiled;
        r.options.modules.fused_norm = r.options.modules.fused_rotary = (bits & 4) != 0;
        CAPTURE(describe(r));
        CAPTURE(mesh.ep);
        const BlockKernels block = block_kernels(model, r);
        // What the forward pass leaves behind is what the backward pass frees: its own results.
        std::int64_t live = 0;
        for (const auto* pass : {&block.forward, &block.backward}) {
          for (const Kernel& k : *pass) {
            for (const MemoryDelta& d : k.memory.allocated)
              live += d.bytes;
            for (const MemoryDelta& d : k.memory.freed)
              live -= d.bytes;
          }
        }
        // Left: gradients of parameters; the input's gradient took the place of the output's.
        CHECK(live == block.gradient_bytes);
      }
    }
  }
}

TEST_CASE("a grouped product takes as long as its tiles do") {
  const GemmCosts costs{
      .peak_fraction = 0.8, .depth = 100, .launch = 5e-6, .split = 1e-5, .hbm_fraction = 0.8};
  const GemmDevice device{FlopsPerSecond(989e12), BytesPerSecond(3.35e12), 132};
  GemmShape one{4096, 4096, 4096}, eight{512, 4096, 4096};
  eight.groups = 8;
  // The same rows and tiles, but eight weight matrices to read.
  CHECK(gemm_time(eight, costs, device) >= gemm_time(one, costs, device));
  CHECK(gemm_time(eight, costs, device).value() < 1.1 * gemm_time(one, costs, device).value());
  eight.m = 520;  // tiles of 64 rows are not shared by experts
  CHECK(gemm_time(eight, costs, device).value() > 1.05 * gemm_time(one, costs, device).value());
}

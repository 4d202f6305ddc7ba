// Work of whole blocks against closed forms.

#include "model/block_kernels.hpp"

#include <doctest/doctest.h>

#include "model/cost/attention.hpp"
#include "tests/model/small_model.hpp"

using namespace forerun;
using namespace forerun::test;

namespace {

// Multiply-adds of a token in a Llama 3.1 8B block: q and o 4096 x 4096, k and v 4096 x 1024, three
// matrices of 4096 x 14336.
constexpr double kWeights8b = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 3.0 * 4096 * 14336;
constexpr double kTokens = static_cast<double>(kBatch * kSequence);

BlockKernels kernels_8b(const BlockRequest& r) {
  return block_kernels(llama_8b(), r);
}

double attention_work(const std::vector<Kernel>& kernels) {
  double flops = 0;
  for (const Kernel& k : kernels) {
    const bool backward = k.family == KernelFamily::kAttentionBackward;
    if (!backward && k.family != KernelFamily::kAttentionForward) continue;
    flops += attention_flops(k.attention, backward) * k.repeat;
  }
  return flops;
}

}  // namespace

TEST_CASE("products of a block cost two operations a weight and token, and twice that backward") {
  for (const MeshDegrees& degrees : all_meshes()) {
    const BlockKernels block = kernels_8b(request(BlockKind::kDecoder, degrees));
    const double share = 1.0 / (degrees.tp * degrees.cp);  // of one rank
    CHECK(gemm_flops(block.forward) == doctest::Approx(2 * kTokens * kWeights8b * share));
    CHECK(gemm_flops(block.backward) == doctest::Approx(4 * kTokens * kWeights8b * share));
  }
}

TEST_CASE("the output projection is the only product outside the blocks") {
  const BlockKernels head = kernels_8b(request(BlockKind::kHead));
  CHECK(gemm_flops(head.forward) == doctest::Approx(2 * kTokens * 4096 * 128256));
  CHECK(gemm_flops(head.backward) == doctest::Approx(4 * kTokens * 4096 * 128256));
  const BlockKernels embedding = kernels_8b(request(BlockKind::kEmbedding));
  CHECK(gemm_flops(embedding.forward) + gemm_flops(embedding.backward) == 0);
}

TEST_CASE("causal attention computes half of the query-key pairs") {
  // Forward two products of head_dim each, 2 operations a multiply-add: 4 d a pair; backward five
  // products (FlashAttention-2, arXiv 2307.08691, section 3.1.2): 10 d.
  for (const MeshDegrees& degrees : all_meshes()) {
    const BlockKernels block = kernels_8b(request(BlockKind::kDecoder, degrees));
    const double pairs = static_cast<double>(kBatch) * 32 * kSequence * kSequence / 2;
    const double share = 1.0 / (degrees.tp * degrees.cp);
    CHECK(attention_work(block.forward) == doctest::Approx(4 * 128 * pairs * share));
    CHECK(attention_work(block.backward) == doctest::Approx(10 * 128 * pairs * share));
  }
}

TEST_CASE("a sliding window takes off what lies outside of it") {
  // Of S queries the first w see 1 ... w keys, the others w: w S - w^2 / 2 pairs.
  BlockRequest r = request(BlockKind::kDecoder);
  r.window = 128;
  const double pairs = static_cast<double>(kBatch) * 32 * (128.0 * kSequence - 128.0 * 128 / 2);
  CHECK(attention_work(kernels_8b(r).forward) == doctest::Approx(4 * 128 * pairs));
  r.window = 2 * kSequence;  // wider than the sequence: the whole causal half
  CHECK(attention_work(kernels_8b(r).forward) ==
        doctest::Approx(4 * 128 * static_cast<double>(kBatch * 32 * kSequence * kSequence) / 2));
}

TEST_CASE("recomputed products run a second time in the backward pass") {
  BlockRequest r = request(BlockKind::kDecoder);
  const double forward = 2 * kTokens * kWeights8b;
  const auto extra = [&](Recompute policy) {
    r.recompute = policy;
    return gemm_flops(kernels_8b(r).backward) - 2 * forward;
  };
  CHECK(extra(Recompute::kSelectiveAttention) == 0);
  // All products but w2, whose result nothing needs.
  CHECK(extra(Recompute::kFull) == doctest::Approx(forward - 2 * kTokens * 4096 * 14336));
  // Kept: wq, wv, w1 and w2. Again: wk (4096 x 1024), wo (4096 x 4096), w3 (4096 x 14336).
  CHECK(extra(Recompute::kSelectiveOp) ==
        doctest::Approx(2 * kTokens * 4096.0 * (1024 + 4096 + 14336)));
}

TEST_CASE("attention runs a second time where its results were not kept") {
  BlockRequest r = request(BlockKind::kDecoder);
  const BlockKernels none = kernels_8b(r);
  const double once = attention_work(none.forward), back = attention_work(none.backward);
  for (const auto& [policy, again] : {std::pair{Recompute::kSelectiveAttention, once},
                                      {Recompute::kFull, once},
                                      {Recompute::kSelectiveOp, 0.0}}) {
    r.recompute = policy;
    CHECK(attention_work(kernels_8b(r).backward) == doctest::Approx(back + again));
  }
}

TEST_CASE("recomputed kernels are charged to recompute and are forward kernels") {
  BlockRequest r = request(BlockKind::kDecoder, {2, 1, true});
  r.recompute = Recompute::kFull;
  for (const Kernel& k : kernels_8b(r).backward) {
    if (!k.recompute || k.is_collective()) continue;
    CHECK(k.category == Category::kRecompute);
    if (k.family == KernelFamily::kGemm) CHECK(k.gemm.layout == GemmLayout::kForward);
  }
  for (const Kernel& k : kernels_8b(r).forward)
    CHECK(!k.recompute);
}

TEST_CASE("products of a quantised block take fp8 operands") {
  BlockRequest r = request(BlockKind::kDecoder);
  r.options.fp8 = true;
  const BlockKernels block = kernels_8b(r);
  for (const auto* pass : {&block.forward, &block.backward}) {
    for (const Kernel& k : *pass) {
      if (k.family == KernelFamily::kGemm) CHECK(k.gemm.dtype == DType::kFp8);
    }
  }
  CHECK(gemm_flops(block.forward) == doctest::Approx(2 * kTokens * kWeights8b));
}

TEST_CASE("compiling never adds kernels or bytes") {
  for (BlockRequest r : decoder_requests(all_meshes())) {
    if (r.compiled) continue;
    CAPTURE(describe(r));
    const BlockKernels eager = block_kernels(small_model(), r);
    r.compiled = r.options.modules.quantise_once = true;
    const BlockKernels compiled = block_kernels(small_model(), r);
    CHECK(compiled.forward.size() < eager.forward.size());
    CHECK(compiled.backward.size() < eager.backward.size());
    CHECK(bytes_of(compiled.forward) < bytes_of(eager.forward));
    CHECK(bytes_of(compiled.backward) < bytes_of(eager.backward));
  }
}

TEST_CASE("parameters of a rank are those of the model, its matrices cut by tp") {
  for (const int tp : {1, 2, 4, 8}) {
    const auto matrices = static_cast<std::int64_t>(kWeights8b) / tp;
    const BlockKernels block = kernels_8b(request(BlockKind::kDecoder, {tp, 1, tp > 1}));
    CHECK(block.parameter_count == matrices + 2 * 4096);  // norms are whole on every rank
    CHECK(block.parameter_tensors == 9);
    CHECK(block.gathered_bytes == 2 * block.parameter_count);  // bf16, all multiples of 512 bytes
    CHECK(block.gradient_bytes == 2 * block.parameter_count);
  }
  const ParameterCount model = count_parameters(llama_8b());
  CHECK(kernels_8b(request(BlockKind::kDecoder)).parameter_count == model.layer);
  CHECK(kernels_8b(request(BlockKind::kEmbedding)).parameter_count == model.embedding);
  CHECK(kernels_8b(request(BlockKind::kHead)).parameter_count == model.head + model.final_norm);
}

TEST_CASE("a block hands on one tensor of hidden states, in its part of the sequence") {
  const std::int64_t whole = kBatch * kSequence * 4096 * 2;
  const auto handed = [](const MeshDegrees& d) {
    return kernels_8b(request(BlockKind::kDecoder, d)).output_bytes;
  };
  CHECK(handed({1, 1, false}) == whole);
  CHECK(handed({2, 1, false}) == whole);
  CHECK(handed({2, 1, true}) == whole / 2);
  CHECK(handed({2, 2, true}) == whole / 4);
}

TEST_CASE("a kernel waits for collectives that it reads, and collectives for kernels") {
  for (const BlockRequest& r : decoder_requests(all_meshes())) {
    CAPTURE(describe(r));
    const BlockKernels block = block_kernels(small_model(), r);
    bool earlier = true, crosses = true, waited_for = true;
    for (const auto* pass : {&block.forward, &block.backward}) {
      std::vector<bool> awaited(pass->size(), false);
      for (std::size_t i = 0; i < pass->size(); ++i) {
        for (const std::int16_t a : (*pass)[i].after) {
          const auto producer = static_cast<std::size_t>(a);
          earlier &= producer < i;
          awaited[producer] = true;
          crosses &= (*pass)[producer].is_collective() || (*pass)[i].is_collective();
        }
      }
      // A collective is for something: what it makes is read, or leaves the block at its end.
      for (std::size_t i = 0; i < pass->size(); ++i) {
        const bool gradient = (*pass)[i].is_collective() && pass == &block.backward;
        waited_for &= !(*pass)[i].is_collective() || awaited[i] || gradient;
      }
    }
    CHECK(earlier);
    CHECK(crosses);
    CHECK(waited_for);
  }
}

// Ring, all-gather and Ulysses attention: what travels, and what hides.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/model/small_model.hpp"

using namespace forerun;

namespace {

int collectives(const std::vector<Kernel>& kernels, CollectiveKind kind) {
  return static_cast<int>(std::count_if(kernels.begin(), kernels.end(), [&](const Kernel& k) {
    return k.is_collective() && k.comm.dim == MeshDim::kContext && k.comm.collective == kind;
  }));
}

BlockRequest by_heads() {
  BlockRequest r = test::request(BlockKind::kDecoder, {1, 4, false, 1, true});
  r.options.whole_sequences = true;
  return r;
}

}  // namespace

TEST_CASE("Ulysses exchanges queries, keys, values and the result, and gathers nothing") {
  const BlockKernels k = block_kernels(test::small_model(), by_heads());
  CHECK(collectives(k.forward, CollectiveKind::kAllToAll) == 4);
  CHECK(collectives(k.backward, CollectiveKind::kAllToAll) == 4);
  CHECK(collectives(k.forward, CollectiveKind::kAllGather) == 0);
  CHECK(collectives(k.backward, CollectiveKind::kReduceScatter) == 0);
}

TEST_CASE("under Ulysses a rank attends over whole sequences with its part of the heads") {
  const BlockKernels cut = block_kernels(test::small_model(), by_heads());
  const BlockKernels whole = block_kernels(test::small_model(), test::request(BlockKind::kDecoder));
  const auto attention = [](const BlockKernels& k) {
    return std::find_if(k.forward.begin(), k.forward.end(),
                        [](const Kernel& kernel) {
                          return kernel.family == KernelFamily::kAttentionForward;
                        })
        ->attention;
  };
  CHECK(attention(cut).q_length == attention(whole).q_length);
  CHECK(4 * attention(cut).heads == attention(whole).heads);
  CHECK(4 * attention(cut).pairs == attention(whole).pairs);
}

TEST_CASE("a ring's collectives hide behind attention") {
  BlockRequest r = test::request(BlockKind::kDecoder, {1, 4, false});
  r.ring = true;
  const BlockKernels k = block_kernels(test::small_model(), r);
  for (const auto* pass : {&k.forward, &k.backward}) {
    for (const Kernel& kernel : *pass) {
      if (!kernel.is_collective() || kernel.comm.dim != MeshDim::kContext) continue;
      REQUIRE(kernel.overlapped_with >= 0);
      const KernelFamily hides = (*pass)[static_cast<std::size_t>(kernel.overlapped_with)].family;
      CHECK(
          (hides == KernelFamily::kAttentionForward || hides == KernelFamily::kAttentionBackward));
    }
  }
}

TEST_CASE("merged projections compute the same in fewer products") {
  BlockRequest r = test::request(BlockKind::kDecoder);
  const auto products = [&] {
    std::pair<int, std::int64_t> out{0, 0};
    for (const Kernel& k : block_kernels(test::small_model(), r).forward) {
      if (k.family != KernelFamily::kGemm) continue;
      ++out.first;
      out.second += k.gemm.m * k.gemm.n * k.gemm.k;
    }
    return out;
  };
  const auto apart = products();
  r.options.modules.merged_projections = r.options.modules.fused_activation = true;
  const auto merged = products();
  CHECK(apart.first == 7);
  CHECK(merged.first == 4);
  CHECK(merged.second == apart.second);
}

TEST_CASE("scores of unfused attention are saved, five bytes each, unless recomputed") {
  // Korthikanti et al. 2022: 5 a s^2 b of the 34 s b h + 5 a s^2 b bytes of a layer.
  BlockRequest r = test::request(BlockKind::kDecoder);
  const auto saved = [&] {
    std::int64_t bytes = 0;
    for (const Kernel& k : block_kernels(test::small_model(), r).forward) {
      for (const MemoryDelta& d : k.memory.allocated)
        bytes += d.component == MemoryComponent::kActivations ? d.bytes : 0;
    }
    return bytes;
  };
  const std::int64_t fused = saved();
  r.options.unfused_attention = true;
  const std::int64_t scores = test::kBatch * 8 * test::kSequence * test::kSequence;
  CHECK(saved() - fused == 5 * scores);
  r.recompute = Recompute::kSelectiveAttention;
  CHECK(saved() < fused + scores);
}

TEST_CASE("a fused cast makes no transposes and no scaling kernels") {
  BlockRequest r = test::request(BlockKind::kDecoder);
  r.options.fp8 = true;
  r.options.modules.fused_quantise = r.options.modules.quantise_once = true;
  r.autodiff.fused_quantise = true;
  const BlockKernels k = block_kernels(test::small_model(), r);
  for (const auto* pass : {&k.forward, &k.backward}) {
    for (const Kernel& kernel : *pass) {
      CHECK(kernel.name.find("transpose") == std::string_view::npos);
      if (kernel.name.starts_with("fp8.")) CHECK(kernel.name == "fp8.quantise");
    }
  }
}

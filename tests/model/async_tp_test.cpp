#include "model/async_tp.hpp"

#include <doctest/doctest.h>

#include "tests/model/small_model.hpp"

using namespace forerun;
using namespace forerun::test;

namespace {

Kernel collective(CollectiveKind kind, std::initializer_list<std::int16_t> after = {},
                  MeshDim dim = MeshDim::kTensor) {
  Kernel k;
  k.family = KernelFamily::kCollective;
  k.comm.collective = kind;
  k.comm.dim = dim;
  k.after.assign(after.begin(), after.end());
  return k;
}

Kernel product(GemmLayout layout, std::initializer_list<std::int16_t> after = {}) {
  Kernel k;
  k.family = KernelFamily::kGemm;
  k.gemm.layout = layout;
  k.after.assign(after.begin(), after.end());
  return k;
}

}  // namespace

TEST_CASE("a gather hides behind the products that read it, cut into a piece a rank") {
  std::vector<Kernel> kernels{collective(CollectiveKind::kAllGather),
                              product(GemmLayout::kForward, {0}),
                              product(GemmLayout::kForward, {0}), product(GemmLayout::kForward)};
  overlap_tensor_parallel(kernels, 4);
  CHECK(kernels[0].overlapped_with >= 0);
  CHECK(kernels[1].overlap_chunks == 4);
  CHECK(kernels[2].overlap_chunks == 4);
  CHECK(kernels[3].overlap_chunks == 1);  // reads something else
}

TEST_CASE("a scatter hides behind the one product that it reduces") {
  std::vector<Kernel> kernels{product(GemmLayout::kForward), product(GemmLayout::kDgrad),
                              collective(CollectiveKind::kReduceScatter, {0}),
                              collective(CollectiveKind::kReduceScatter, {0, 1})};
  overlap_tensor_parallel(kernels, 2);
  CHECK(kernels[2].overlapped_with == 0);
  CHECK(kernels[0].overlap_chunks == 2);
  CHECK(kernels[3].overlapped_with == -1);  // it reduces two
  CHECK(kernels[1].overlap_chunks == 1);
}

TEST_CASE("weight gradients, all-reduces and context parallelism hide nothing") {
  std::vector<Kernel> kernels{collective(CollectiveKind::kAllGather),
                              product(GemmLayout::kWgrad, {0}),  // contracts the gathered rows
                              collective(CollectiveKind::kAllReduce, {1}),
                              collective(CollectiveKind::kAllGather, {}, MeshDim::kContext),
                              product(GemmLayout::kForward, {3})};
  overlap_tensor_parallel(kernels, 2);
  for (const Kernel& k : kernels) {
    CHECK(k.overlapped_with == -1);
    CHECK(k.overlap_chunks == 1);
  }
}

TEST_CASE("both gathers and both scatters of a compiled block are hidden forward") {
  // PyTorch's micro-pipeline: q, k and v behind the first gather, w1 and w3 behind the second; wo
  // and w2 before their scatters: seven products cut.
  BlockRequest r = request(BlockKind::kDecoder, {2, 1, true});
  r.async_tp = r.compiled = true;
  const BlockKernels block = block_kernels(small_model(), r);
  int hidden = 0, cut = 0;
  for (const Kernel& k : block.forward) {
    hidden += k.overlapped_with >= 0 ? 1 : 0;
    cut += k.overlap_chunks == 2 ? 1 : 0;
  }
  CHECK(hidden == 4);
  CHECK(cut == 7);
}

TEST_CASE("without async TP nothing is hidden") {
  const BlockRequest r = request(BlockKind::kDecoder, {2, 1, true});
  for (const Kernel& k : block_kernels(small_model(), r).forward)
    CHECK(k.overlapped_with == -1);
}

// The collectives of whole blocks, which no table states: they follow from placements alone. Counts
// by the papers that introduced each way to cut a block.

#include <doctest/doctest.h>

#include "tests/model/small_model.hpp"

using namespace forerun;
using namespace forerun::test;

namespace {

constexpr auto kAllGather = CollectiveKind::kAllGather;
constexpr auto kReduceScatter = CollectiveKind::kReduceScatter;
constexpr auto kAllReduce = CollectiveKind::kAllReduce;
constexpr MeshDim kTp = MeshDim::kTensor, kCp = MeshDim::kContext;

// One tensor of hidden states, bf16: batch x sequence x hidden x 2 bytes.
constexpr std::int64_t kHiddenBytes = kBatch * kSequence * 256 * 2;
// The gradient of a norm's weight, bf16.
constexpr std::int64_t kNormBytes = 256 * 2;

BlockKernels decoder(const BlockRequest& r) {
  return block_kernels(small_model(), r);
}

}  // namespace

TEST_CASE("a block on one rank has no collective") {
  for (const BlockKind kind : {BlockKind::kEmbedding, BlockKind::kDecoder, BlockKind::kHead}) {
    const BlockKernels block = block_kernels(small_model(), request(kind));
    CHECK(collectives(block.forward).empty());
    CHECK(collectives(block.backward).empty());
  }
}

TEST_CASE("tensor parallelism costs a block two all-reduces each way") {
  // Megatron-LM (arXiv 1909.08053, section 3): g of attention and MLP forward, f of both backward.
  for (const int tp : {2, 4}) {
    const BlockKernels block = decoder(request(BlockKind::kDecoder, {tp, 1, false}));
    for (const auto* pass : {&block.forward, &block.backward}) {
      CHECK(collectives(*pass).size() == 2);
      CHECK(count(*pass, kAllReduce, kTp, kHiddenBytes) == 2);
    }
  }
}

TEST_CASE("sequence parallelism turns each all-reduce into a gather and a scatter") {
  // Korthikanti et al. (arXiv 2205.05198, section 4.2.2): g and g-bar of attention and MLP. The
  // gradients of the two norms' weights, whose rows are cut, are reduced besides.
  const BlockKernels block = decoder(request(BlockKind::kDecoder, {2, 1, true}));
  CHECK(collectives(block.forward).size() == 4);
  CHECK(count(block.forward, kAllGather, kTp, kHiddenBytes) == 2);
  CHECK(count(block.forward, kReduceScatter, kTp, kHiddenBytes) == 2);
  CHECK(collectives(block.backward).size() == 6);
  CHECK(count(block.backward, kAllGather, kTp, kHiddenBytes) == 2);
  CHECK(count(block.backward, kReduceScatter, kTp, kHiddenBytes) == 2);
  CHECK(count(block.backward, kAllReduce, kTp, kNormBytes) == 2);
}

TEST_CASE("a stack that saves the cut input gathers it again for the weight gradients") {
  // arXiv 2205.05198, section 4.2.2: "we store only the Y^s part on each rank and perform an extra
  // all-gather in the backward pass": one for attention, one for the MLP.
  BlockRequest r = request(BlockKind::kDecoder, {2, 1, true});
  r.autodiff.regather_in_backward = true;
  const BlockKernels block = decoder(r);
  CHECK(count(block.forward, kAllGather, kTp, kHiddenBytes) == 2);
  CHECK(count(block.backward, kAllGather, kTp, kHiddenBytes) == 2 + 2);
  CHECK(count(block.backward, kReduceScatter, kTp, kHiddenBytes) == 2);
}

TEST_CASE("recomputing a block runs its collectives again, but for those it does not need") {
  // Full: both gathers, and the scatter behind attention that the MLP's part needs; not the one at
  // the end of the block. A save list that has reduce-scatters spares that too.
  BlockRequest r = request(BlockKind::kDecoder, {2, 1, true});
  r.recompute = Recompute::kFull;
  const BlockKernels full = decoder(r);
  CHECK(count(full.backward, kAllGather, kTp, kHiddenBytes) == 2 + 2);
  CHECK(count(full.backward, kReduceScatter, kTp, kHiddenBytes) == 2 + 1);
  r.recompute = Recompute::kSelectiveOp;
  const BlockKernels listed = decoder(r);
  CHECK(count(listed.backward, kAllGather, kTp, kHiddenBytes) == 2 + 2);
  CHECK(count(listed.backward, kReduceScatter, kTp, kHiddenBytes) == 2);
  r.recompute = Recompute::kSelectiveAttention;  // the core holds no collective
  CHECK(collectives(decoder(r).backward).size() == 6);
}

TEST_CASE("compiling a block changes none of its collectives") {
  for (const MeshDegrees& degrees : all_meshes()) {
    BlockRequest r = request(BlockKind::kDecoder, degrees);
    const BlockKernels eager = decoder(r);
    r.compiled = true;
    const BlockKernels compiled = decoder(r);
    CHECK(collectives(compiled.forward).size() == collectives(eager.forward).size());
    CHECK(collectives(compiled.backward).size() == collectives(eager.backward).size());
  }
}

TEST_CASE("hidden states are gathered in fp8 where the linear behind is fp8, and scales reduced") {
  // A byte instead of two. One all-reduce of a 4-byte maximum a cast: the inputs of attention, of
  // wo, of the MLP and of w2.
  BlockRequest r = request(BlockKind::kDecoder, {2, 1, true});
  r.options.fp8 = r.compiled = r.options.modules.quantise_once = true;
  const BlockKernels block = decoder(r);
  CHECK(count(block.forward, kAllGather, kTp, kHiddenBytes / 2) == 2);
  CHECK(count(block.forward, kAllGather, kTp, kHiddenBytes) == 0);
  CHECK(count(block.forward, kAllReduce, kTp, 4) == 4);
  CHECK(count(block.forward, kReduceScatter, kTp, kHiddenBytes) == 2);
}

TEST_CASE("context parallelism gathers keys and values and scatters their gradients") {
  // Keys and values of the whole sequence: batch x sequence x (kv_heads x head_dim = 128) x 2 bytes
  // each; gathered again backward; their gradients are summed in fp32 (4 bytes).
  constexpr std::int64_t kKvBytes = kBatch * kSequence * 128 * 2;
  BlockRequest r = request(BlockKind::kDecoder, {1, 2, false});
  r.options.modules.expand_kv = false;
  const BlockKernels block = decoder(r);
  CHECK(collectives(block.forward).size() == 2);
  CHECK(count(block.forward, kAllGather, kCp, kKvBytes) == 2);
  CHECK(collectives(block.backward).size() == 4);
  CHECK(count(block.backward, kAllGather, kCp, kKvBytes) == 2);
  CHECK(count(block.backward, kReduceScatter, kCp, 2 * kKvBytes) == 2);
}

TEST_CASE("heads that are repeated before attention are gathered repeated") {
  // torchtitan's repeat_kv: 8 heads of 32 instead of 4.
  const BlockKernels block = decoder(request(BlockKind::kDecoder, {1, 2, false}));
  CHECK(count(block.forward, kAllGather, kCp, kBatch * kSequence * 256 * 2) == 2);
}

TEST_CASE("tensor and context parallelism each see the tensor that the other has cut") {
  // Hidden states of half the sequence; keys and values of half the heads (repeated: 256 / 2).
  const BlockKernels block = decoder(request(BlockKind::kDecoder, {2, 2, true}));
  CHECK(count(block.forward, kAllGather, kTp, kHiddenBytes / 2) == 2);
  CHECK(count(block.forward, kReduceScatter, kTp, kHiddenBytes / 2) == 2);
  CHECK(count(block.forward, kAllGather, kCp, kBatch * kSequence * 128 * 2) == 2);
}

TEST_CASE("a vocabulary-parallel embedding reduces its output once") {
  const BlockKernels plain =
      block_kernels(small_model(), request(BlockKind::kEmbedding, {2, 1, false}));
  CHECK(collectives(plain.forward).size() == 1);
  CHECK(count(plain.forward, kAllReduce, kTp, kHiddenBytes) == 1);
  CHECK(collectives(plain.backward).empty());
  const BlockKernels cut =
      block_kernels(small_model(), request(BlockKind::kEmbedding, {2, 1, true}));
  CHECK(count(cut.forward, kReduceScatter, kTp, kHiddenBytes) == 1);
  CHECK(count(cut.backward, kAllGather, kTp, kHiddenBytes) == 1);
}

TEST_CASE("a parallel loss exchanges numbers of rows instead of gathering the logits") {
  // Plain: one gather of 1024 logits a token. Parallel: the largest logit and the sum of exponents,
  // 4 bytes a token each (torch.distributed.tensor.parallel.loss_parallel).
  BlockRequest r = request(BlockKind::kHead, {2, 1, true});
  const auto gathers_of_logits = [](const BlockKernels& head) {
    int n = 0;
    for (const Kernel& k : collectives(head.forward)) {
      n += k.comm.bytes >= kBatch * kSequence * 1024 * 2 ? 1 : 0;
    }
    return n;
  };
  const BlockKernels plain = block_kernels(small_model(), r);
  CHECK(gathers_of_logits(plain) == 1);
  r.options.parallel_loss = true;
  const BlockKernels parallel = block_kernels(small_model(), r);
  CHECK(gathers_of_logits(parallel) == 0);
  CHECK(count(parallel.forward, kAllReduce, kTp, kBatch * kSequence * 4) >= 2);
  for (const BlockKernels* head : {&plain, &parallel}) {
    CHECK(count(head->backward, kReduceScatter, kTp, kHiddenBytes) == 1);
    CHECK(count(head->backward, kAllReduce, kTp, kNormBytes) == 1);
  }
}

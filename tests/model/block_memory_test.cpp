// The tensors that the kernels of a block make and free (model/block_kernels.cpp).

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "tests/model/small_model.hpp"

using namespace forerun;
using namespace forerun::test;

namespace {

using Components = std::array<std::int64_t, kMemoryComponents>;

/// What a pass leaves behind, and the highest and lowest level on the way.
struct Walk {
  Components net{};
  std::int64_t live = 0, peak = 0, held = 0, held_peak = 0;
  bool holds_what_lives = true;

  void run(const std::vector<Kernel>& kernels) {
    for (const Kernel& k : kernels) {
      for (const MemoryDelta& d : k.memory.allocated)
        change(d, 1);
      peak = std::max(peak, live);
      held += k.memory.held_allocating;
      held_peak = std::max(held_peak, held);
      holds_what_lives &= held >= live;
      for (const MemoryDelta& d : k.memory.freed)
        change(d, -1);
      held += k.memory.held_freeing;
      holds_what_lives &= held >= live;
    }
  }

 private:
  void change(const MemoryDelta& d, std::int64_t sign) {
    net[static_cast<std::size_t>(d.component)] += sign * d.bytes;
    live += sign * d.bytes;
  }
};

std::int64_t of(const Components& net, MemoryComponent component) {
  return net[static_cast<std::size_t>(component)];
}

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

TEST_CASE("both passes of a block leave its parameters' gradients and nothing else") {
  for (const BlockRequest& r : every_block()) {
    CAPTURE(describe(r));
    const BlockKernels block = block_kernels(small_model(), r);
    Walk walk;
    walk.run(block.forward);
    walk.run(block.backward);
    // An embedding makes hidden states and takes their gradient, the head does the opposite; what
    // a decoder block is handed and hands on is of one size.
    const std::int64_t hidden =
        block_kernels(small_model(), request(BlockKind::kDecoder, r.degrees)).output_bytes;
    const std::int64_t handed = r.kind == BlockKind::kEmbedding ? hidden
                                : r.kind == BlockKind::kHead    ? -hidden
                                                                : 0;
    Components expected{};
    expected[static_cast<std::size_t>(MemoryComponent::kUnreduced)] = block.gradient_bytes;
    expected[static_cast<std::size_t>(MemoryComponent::kActivations)] = handed;
    expected[static_cast<std::size_t>(MemoryComponent::kTemporaries)] = -handed;
    CHECK(walk.net == expected);
    CHECK(walk.held == walk.live);
  }
}

TEST_CASE("the forward pass leaves what is saved and its output") {
  // Fused modules, eager, in units of one tensor of hidden states H (the test of model/recompute
  // derives them tensor by tensor): attention norm, q, k, v, attention's output, residual, ffn norm
  // and four of three times the width; the log-sum-exp; the output. The input x was there before.
  BlockRequest r = request(BlockKind::kDecoder);
  r.options.modules.fused_norm = r.options.modules.fused_rotary = true;
  constexpr std::int64_t kH = kBatch * kSequence * 256 * 2, kLse = kBatch * kSequence * 8 * 4;
  Walk none;
  none.run(block_kernels(small_model(), r).forward);
  CHECK(none.live == (7 + 4 * 3) * kH + kLse + kH);
  CHECK(of(none.net, MemoryComponent::kTemporaries) == 0);

  r.recompute = Recompute::kFull;  // the output alone; x stays what it was
  Walk full;
  full.run(block_kernels(small_model(), r).forward);
  CHECK(full.live == kH);
}

TEST_CASE("a pool holds at least what lives, and holes make it hold more") {
  bool some_hole = false;
  for (const BlockRequest& r : every_block()) {
    CAPTURE(describe(r));
    const BlockKernels block = block_kernels(small_model(), r);
    Walk walk;
    walk.run(block.forward);
    walk.run(block.backward);
    CHECK(walk.held_peak >= walk.peak);
    CHECK(walk.holds_what_lives);
    some_hole |= walk.held_peak > walk.peak;
  }
  CHECK(some_hole);
}

TEST_CASE("tensors are rounded to the allocator's 512 bytes") {
  BlockRequest r = request(BlockKind::kDecoder);
  r.options.batch = 1;
  r.options.sequence = 3;  // 3 x 256 x 2 bytes: a multiple; the log-sum-exp of 96 bytes is not
  const BlockKernels block = block_kernels(small_model(), r);
  for (const auto* pass : {&block.forward, &block.backward}) {
    for (const Kernel& k : *pass) {
      for (const MemoryDelta& d : k.memory.allocated)
        CHECK(d.bytes % 512 == 0);
      for (const MemoryDelta& d : k.memory.freed)
        CHECK(d.bytes % 512 == 0);
    }
  }
}

TEST_CASE("the loss holds the logits and their copies in fp32") {
  // bf16 logits, their fp32 copy and the log-probabilities are alive together when the loss is
  // taken, since variables of the loss function hold them: 2 + 4 + 4 bytes a logit.
  const BlockKernels head = block_kernels(small_model(), request(BlockKind::kHead));
  Walk walk;
  walk.run(head.forward);
  constexpr std::int64_t kLogits = kBatch * kSequence * 1024;
  CHECK(head.logit_bytes == 2 * kLogits);
  CHECK(walk.peak >= (2 + 4 + 4) * kLogits);
  CHECK(walk.peak < (2 + 4 + 4 + 4) * kLogits);
}

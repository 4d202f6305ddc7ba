#include "model/costing.hpp"

#include <doctest/doctest.h>

#include "tests/model/small_model.hpp"
#include "tests/support/plans.hpp"

using namespace forerun;
using namespace forerun::test;

namespace {

/// A job on one node whose host times are round numbers.
struct Bench {
  Bench() {
    HostCosts& host = scenario.software.host;
    host.eager_forward = 1;
    host.eager_backward = 10;
    host.compiled_region = 100;
    host.compiled_kernel = 1000;
    host.collective = 10000;
  }

  [[nodiscard]] CostedBlock costed(const BlockKernels& kernels) const {
    Span tp;
    tp.ranks = tp.ranks_per_node = 2;
    tp.tier = Tier::kNode;
    const CostingContext context{
        &costs, &scenario.software.host, AttentionKernel::kFlash2, Precision::kBf16, tp, Span{}};
    return cost_block(BlockKind::kDecoder, kernels, context);
  }

  Scenario scenario = job_of(
                          "cluster: {name: dgx-h100, gpus: 8}\nmodel: llama3-8b\n"
                          "training: {sequence_length: 4096, micro_batch: 1, global_batch: 8}\n")
                          .scenario;
  Profile profile = load_profile(source_data(), scenario.cluster.gpu.name);
  Costs costs{scenario, profile};
};

Kernel plain(bool recompute = false, int repeat = 1) {
  Kernel k;
  k.family = KernelFamily::kEager;
  k.bytes = 1 << 20;
  k.recompute = recompute;
  k.repeat = repeat;
  return k;
}

Kernel gather() {
  Kernel k;
  k.family = KernelFamily::kCollective;
  k.comm = {CollectiveKind::kAllGather, MeshDim::kTensor, 1 << 20};
  k.after.push_back(0);
  return k;
}

}  // namespace

TEST_CASE("the host launches kernel after kernel and each is issued when its launch is done") {
  BlockKernels kernels;
  kernels.forward = {plain(), gather(), plain(false, 3)};
  const CostedPass pass = Bench().costed(kernels).forward;
  REQUIRE(pass.operations.size() == 3);
  CHECK(pass.operations[0].issued_at == 1);
  CHECK(pass.operations[1].issued_at == 1 + 10000);
  CHECK(pass.operations[2].issued_at == 1 + 10000 + 3);  // three launches
  CHECK(pass.host_seconds == 10004);
}

TEST_CASE("autograd launches backward kernels, the module's code those that run again") {
  BlockKernels kernels;
  kernels.backward = {plain(true), plain(false)};
  CHECK(Bench().costed(kernels).backward.host_seconds == 1 + 10);
}

TEST_CASE("a compiled pass costs one entry and its kernels' launches, in both directions") {
  BlockKernels kernels;
  kernels.compiled = true;
  kernels.forward = kernels.backward = {plain(), plain()};
  const CostedBlock block = Bench().costed(kernels);
  CHECK(block.forward.host_seconds == 100 + 2 * 1000);
  CHECK(block.backward.host_seconds == 100 + 2 * 1000);
}

TEST_CASE("kernels run on the compute stream and collectives on the stream of their dimension") {
  BlockKernels kernels;
  kernels.forward = {plain(), gather(), gather()};
  kernels.forward[2].comm.dim = MeshDim::kContext;
  const CostedPass pass = Bench().costed(kernels).forward;
  CHECK(pass.operations[0].stream == slot_of(Stream::kCompute));
  CHECK(pass.operations[1].stream == slot_of(Stream::kTensor));
  CHECK(pass.operations[2].stream == slot_of(Stream::kContext));
  CHECK(pass.operations[1].after.size() == 1);
  CHECK(pass.operations[1].after[0] == 0);
}

TEST_CASE("operations take what the cost formulas say") {
  const Bench bench;
  BlockKernels kernels;
  kernels.forward = {plain(), gather()};
  const CostedPass pass = bench.costed(kernels).forward;
  CHECK(pass.operations[0].seconds == bench.costs.memory_bound(KernelFamily::kEager, 1 << 20));
  Span two;
  two.ranks = two.ranks_per_node = 2;
  two.tier = Tier::kNode;
  CHECK(pass.operations[1].seconds ==
        bench.costs.collective(CollectiveKind::kAllGather, 1 << 20, two));
}

TEST_CASE("memory is allocated before a kernel and freed behind it, in the order of launches") {
  BlockKernels kernels;
  kernels.forward = {plain(), plain()};
  kernels.forward[0].memory.allocate(MemoryComponent::kTemporaries, 512);
  kernels.forward[0].memory.held_allocating = 1024;  // a hole besides
  kernels.forward[1].memory.free(MemoryComponent::kTemporaries, 512);
  kernels.forward[1].memory.held_freeing = -1024;
  const CostedPass pass = Bench().costed(kernels).forward;
  REQUIRE(pass.events.size() == 2);
  CHECK(pass.events[0].bytes == 512);
  CHECK(pass.events[0].held == 1024);
  CHECK(pass.events[1].bytes == -512);
  CHECK(pass.events[1].held == -1024);
}

TEST_CASE("a collective that products hide takes less than one that stands alone") {
  BlockRequest r = request(BlockKind::kDecoder, {2, 1, true});
  r.options.batch = 1;
  r.options.sequence = 8192;
  r.compiled = true;
  const Bench bench;
  const auto exposed = [&](bool async) {
    r.async_tp = async;
    const BlockKernels kernels = block_kernels(llama_8b(), r);
    double seconds = 0;
    for (const Operation& op : bench.costed(kernels).forward.operations) {
      seconds += op.stream == slot_of(Stream::kTensor) ? op.seconds : 0;
    }
    return seconds;
  };
  CHECK(exposed(true) < 0.5 * exposed(false));
}

#include "model/cost/costs.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/plans.hpp"

using namespace forerun;

namespace {

struct Bench {
  explicit Bench(const std::string& cluster, int gpus, const std::string& rest = "")
      : scenario(test::job_of(fmt::format("cluster: {{name: {}, gpus: {}}}\nmodel: llama3-8b\n"
                                          "training: {{sequence_length: 4096, micro_batch: 1, "
                                          "global_batch: {}}}\n{}",
                                          cluster, gpus, gpus, rest))
                     .scenario),
        profile(load_profile(test::source_data(), scenario.cluster.gpu.name)),
        costs(scenario, profile) {}
  Scenario scenario;
  Profile profile;
  Costs costs;
};

Kernel product(DType type = DType::kBf16, GemmLayout layout = GemmLayout::kForward) {
  Kernel k;
  k.family = KernelFamily::kGemm;
  k.gemm = {8192, 8192, 8192, type, layout};
  return k;
}

double seconds(const Costs& costs, const Kernel& kernel, bool fp8_step = false) {
  return costs.kernel(kernel, AttentionKernel::kFlash2,
                      fp8_step ? Precision::kFp8Tensorwise : Precision::kBf16);
}

Span across(std::int64_t nodes, Tier tier) {
  return {8 * nodes, nodes, 8, tier == Tier::kRack ? 1 : nodes, tier};
}

}  // namespace

TEST_CASE("a part with a lower power cap runs products slower, and bytes as its memory allows") {
  const Bench full("dgx-h100", 8), capped("grand-teton-h100-95gb", 8);  // 700 W and 500 W
  CHECK(seconds(capped.costs, product()) > 1.05 * seconds(full.costs, product()));
  // 3.35 against 2.4 TB/s, launches alike.
  const double bytes = 1e10;
  CHECK(capped.costs.memory_bound(KernelFamily::kFused, bytes) ==
        doctest::Approx(3.35 / 2.4 * full.costs.memory_bound(KernelFamily::kFused, bytes))
            .epsilon(1e-3));
}

TEST_CASE("the slowest of more chips is slower") {
  const Bench few("dgx-h100", 8), many("dgx-h100", 512);
  CHECK(seconds(many.costs, product()) > seconds(few.costs, product()));
}

TEST_CASE("fp8 products are faster, and draw less power a product") {
  const Bench bench("dgx-h100", 8);
  CHECK(seconds(bench.costs, product(DType::kFp8), true) < 0.7 * seconds(bench.costs, product()));
  CHECK(seconds(bench.costs, product(), true) < seconds(bench.costs, product(), false));
}

TEST_CASE("fp8 gradients accumulate in full where the stack does not ask for fast accumulation") {
  Bench bench("dgx-h100", 8);  // no fast accumulation backward
  const double slow = seconds(bench.costs, product(DType::kFp8, GemmLayout::kDgrad), true);
  const double forward = seconds(bench.costs, product(DType::kFp8), true);
  bench.scenario.software.fp8_fast_accumulation_backward = true;
  const double fast = seconds(bench.costs, product(DType::kFp8, GemmLayout::kDgrad), true);
  CHECK(fast == forward);
  CHECK(slow > 1.1 * fast);  // the profile's factor is 1.15
}

TEST_CASE("a kernel that is launched more often takes as much longer") {
  const Bench bench("dgx-h100", 8);
  Kernel k = product();
  const double once = seconds(bench.costs, k);
  k.repeat = 3;
  CHECK(seconds(bench.costs, k) == doctest::Approx(3 * once));
}

TEST_CASE("a product in pieces beside copies takes longer than whole") {
  const Bench bench("dgx-h100", 8);
  Kernel k = product();
  const double whole = seconds(bench.costs, k);
  k.overlap_chunks = 4;
  CHECK(seconds(bench.costs, k) > whole);
  CHECK(seconds(bench.costs, k) < 1.5 * whole);
}

TEST_CASE("oversubscription takes bandwidth beyond a rack alone") {
  Bench bench("dgx-h100", 512);
  bench.scenario.cluster.oversubscription.value = 4;
  const auto gather = [&](Tier tier) {
    return bench.costs.collective(CollectiveKind::kAllGather, 1e9, across(4, tier));
  };
  CHECK(gather(Tier::kCluster) > 2 * gather(Tier::kRack));
  CHECK(bench.costs.send(1e9, Tier::kCluster) >
        3.9 * bench.costs.send(1e9, Tier::kRack));  // a quarter of the NIC
}

TEST_CASE("a bandwidth that was measured replaces the formula's between nodes") {
  Bench bench("dgx-h100", 64);
  const Span two = across(2, Tier::kRack), one{8, 1, 8, 1, Tier::kNode};
  const auto gather = [&](const Span& span) {
    return bench.costs.collective(CollectiveKind::kAllGather, 16e9, span);
  };
  const double formula = gather(two), inside = gather(one);
  bench.scenario.measured.allgather_busbw = BytesPerSecond(100e9);
  // 16 GB x 15 / 16 at 100 GB/s: 150 ms; latency is some tens of microseconds.
  CHECK(gather(two) == doctest::Approx(0.150).epsilon(0.01));
  CHECK(gather(two) != formula);
  CHECK(gather(one) == inside);
  CHECK(bench.costs.collective(CollectiveKind::kReduceScatter, 16e9, two) <
        0.1);  // was not measured
}

TEST_CASE("a collective beside kernels keeps the rate of where it runs") {
  const Bench bench("dgx-h100", 64);
  CHECK(bench.costs.rate_beside_kernels({8, 1, 8, 1, Tier::kNode}) ==
        bench.profile.interference.collective_node);
  CHECK(bench.costs.rate_beside_kernels(across(2, Tier::kRack)) ==
        bench.profile.interference.collective_net);
}

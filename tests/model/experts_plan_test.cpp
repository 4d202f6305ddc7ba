// Whole plans of models with experts.

#include <doctest/doctest.h>

#include "model/forecaster.hpp"
#include "tests/support/plans.hpp"
#include "workloads/rules.hpp"

using namespace forerun;

namespace {

/// A run on 16 GPUs; `keys` are added to its sections.
struct Run {
  std::string model = "qwen3-30b-a3b";
  std::string parallelism = "dp_shard: 16";
  std::string training = "moe_imbalance: 1";
  std::string execution = "recompute: full";
};

Job job(const Run& run) {
  return test::job_of("cluster: {name: dgx-h100, gpus: 16}\nmodel: " + run.model +
                      "\nsoftware: torchtitan-2024-12\ntraining: {sequence_length: 4096, "
                      "micro_batch: 1, global_batch: 16, " +
                      run.training + "}\nparallelism: {" + run.parallelism + "}\nexecution: {" +
                      run.execution + "}\n");
}

Forecast forecast(const Run& run) {
  const Job j = job(run);
  REQUIRE(first_broken(j.scenario, j.plan) == nullptr);
  const Profile profile = load_profile(test::source_data(), j.scenario.cluster.gpu.name);
  REQUIRE(unsupported_part(j.scenario, j.plan, profile).empty());
  return Forecaster(j.scenario, profile).explain(j);
}

double of(const Forecast& f, MemoryComponent component) {
  return static_cast<double>(f.live_at_peak[static_cast<std::size_t>(component)]);
}
double of(const Forecast& f, Category category) {
  return f.breakdown[static_cast<std::size_t>(category)];
}

constexpr const char* kMixed =
    "{layers: 12, hidden: 1024, ffn_hidden: 4096, heads: 8, vocab: 32000, experts: 16, top_k: 2, "
    "expert_ffn: 512, shared_experts: 1, ";

}  // namespace

TEST_CASE("states are cut over all ranks whatever the expert group, what is gathered is not") {
  const Forecast one = forecast({});
  const Forecast eight = forecast({.parallelism = "dp_shard: 16, ep: 8"});
  const double states = 30'532'122'624.0 / 16;
  for (const MemoryComponent c : {MemoryComponent::kParameters, MemoryComponent::kOptimizer}) {
    const double bytes = c == MemoryComponent::kParameters ? 4 : 8;
    CHECK(of(one, c) == doctest::Approx(bytes * states).epsilon(1e-4));
    CHECK(of(eight, c) == doctest::Approx(bytes * states).epsilon(1e-4));
  }
  CHECK(eight.metrics.memory.reserved < one.metrics.memory.reserved);
  // Selective recompute keeps what has travelled: two tensors of rows a layer, 4096 x 8 x 2048.
  const auto saved = [](const char* parallelism) {
    return of(forecast({.parallelism = parallelism, .execution = "recompute: selective-op"}),
              MemoryComponent::kActivations);
  };
  CHECK(saved("dp_shard: 16, ep: 8") - saved("dp_shard: 16") >= 2.0 * 47 * 4096 * 8 * 2048 * 2);
}

TEST_CASE("without an expert group nothing travels between experts") {
  CHECK(of(forecast({}), Category::kExposedEp) == 0);
  CHECK(of(forecast({.parallelism = "dp_shard: 16, ep: 8"}), Category::kExposedEp) > 0);
}

TEST_CASE("imbalance costs time and memory") {
  const char* ep8 = "dp_shard: 16, ep: 8";
  const char* none = "recompute: none";
  const Forecast even = forecast({.parallelism = ep8, .execution = none});
  const Forecast uneven =
      forecast({.parallelism = ep8, .training = "moe_imbalance: 2", .execution = none});
  CHECK(uneven.metrics.step_seconds > even.metrics.step_seconds);
  CHECK(uneven.metrics.memory.reserved > even.metrics.memory.reserved);
}

TEST_CASE("dense layers in front and in between are blocks of their own") {
  // The kernels' products are 6 FLOPs a weight and token without recompute, whatever the mixture.
  for (const char* mixture : {"first_k_dense: 0}", "first_k_dense: 3}", "moe_every: 2}",
                              "first_k_dense: 2, moe_every: 3}", "first_k_dense: 12}"}) {
    CAPTURE(mixture);
    for (const char* parallel : {"dp_shard: 16, ep: 4", "dp_shard: 4, pp: 4, ep: 2"}) {
      const Run run{std::string(kMixed) + mixture, std::string(parallel)};
      Job j = job(run);
      j.plan.recompute = Recompute::kNone;
      const Profile profile = load_profile(test::source_data(), j.scenario.cluster.gpu.name);
      const Forecast f = Forecaster(j.scenario, profile).explain(j);
      // Attention's kernel recomputes scores in the backward pass: 14 instead of 12 a pair, halved.
      const ModelSpec& m = j.scenario.model;
      const double tokens = f.metrics.tokens_per_second_gpu;
      const double more = tokens * static_cast<double>(m.layers * m.q_width()) * 4096;
      // Weight vectors of norms count as products in the convention of model FLOPs.
      CHECK(f.hardware_flops_gpu - more ==
            doctest::Approx(f.metrics.model_flops_gpu).epsilon(1e-3));
    }
  }
}

TEST_CASE("experts over tp want sequence parallelism, and are cut over tp or not at all") {
  const auto missing = [](const std::string& parallelism) {
    const Job j = job({.parallelism = parallelism});
    const Profile profile = load_profile(test::source_data(), j.scenario.cluster.gpu.name);
    return unsupported_part(j.scenario, j.plan, profile);
  };
  CHECK(missing("dp_shard: 4, tp: 4, ep: 4").empty());
  CHECK(missing("dp_shard: 4, tp: 4, ep: 4, etp: 4").empty());
  CHECK(missing("dp_shard: 4, tp: 4, ep: 4, etp: 2") == "etp other than 1 and tp");
  CHECK(missing("dp_shard: 4, tp: 4, ep: 4, sequence_parallel: false") ==
        "experts and tp without sequence parallelism");
}

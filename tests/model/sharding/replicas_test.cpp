// Parameters that every data-parallel rank holds: what stays on a rank, and what overlaps.

#include <doctest/doctest.h>

#include <cmath>

#include "model/forecaster.hpp"
#include "tests/support/stacks.hpp"

using namespace forerun;

namespace {

Forecast forecast(const std::string& yaml) {
  const test::StackRun run(yaml);
  return Forecaster(run.job.scenario, run.profile).explain(run.job);
}

/// Bytes a parameter that stay on a rank, workspaces apart.
double resident_per_parameter(const std::string& stack, int ranks, int zero) {
  const test::StackRun run(test::run_of(
      stack, ranks, "dp_shard: 1, dp_replicate: -1, zero_stage: " + std::to_string(zero)));
  Forecaster forecaster(run.job.scenario, run.profile);
  const Forecast f = forecaster.explain(run.job);
  const double workspace = run.job.scenario.software.memory.workspace_bytes;
  const auto parameters = static_cast<double>(count_parameters(run.job.scenario.model).total);
  return (static_cast<double>(f.metrics.memory.resident) - workspace) / parameters;
}

bool about(double a, double b) {
  return std::abs(a - b) < 1e-3 * b;
}

}  // namespace

TEST_CASE("Megatron keeps 18 bytes a parameter, with the distributed optimizer 6 + 12 / dp") {
  // megatron/training/theoretical_memory_usage.py
  CHECK(about(resident_per_parameter("megatron-2025-03", 8, 0), 18));
  for (const int dp : {2, 4, 8})
    CHECK(about(resident_per_parameter("megatron-2025-03", dp, 1), 6 + 12.0 / dp));
}

TEST_CASE("nanotron keeps 20 bytes a parameter in ZeRO 0, and 10 + 14 / dp in ZeRO 1") {
  // Its published runs' allocated memory.
  CHECK(about(resident_per_parameter("nanotron-2024-12", 1, 0), 18));
  CHECK(about(resident_per_parameter("nanotron-2024-12", 8, 0), 20));
  for (const int dp : {2, 4, 8})
    CHECK(about(resident_per_parameter("nanotron-2024-12", dp, 1), 10 + 14.0 / dp));
}

TEST_CASE("reducing beside the backward pass is never slower than behind it") {
  test::StackRun run(test::run_of("megatron-2025-03", 32, "dp_shard: 1, dp_replicate: -1"));
  const auto step = [&] {
    return Forecaster(run.job.scenario, run.profile).evaluate(run.job.plan).step_seconds;
  };
  const double beside = step();
  run.job.scenario.software.replicas.overlap_zero1 = false;
  run.job.scenario.software.replicas.overlap_gather = false;
  CHECK(step() > beside);
}

TEST_CASE("copies of shards are summed, and cost less gathering across nodes") {
  const Forecast whole = forecast(test::run_of("torchtitan-2024-12", 32, "dp_shard: -1"));
  const Forecast copies =
      forecast(test::run_of("torchtitan-2024-12", 32, "dp_shard: 8, dp_replicate: -1"));
  CHECK(copies.metrics.memory.resident > 3 * whole.metrics.memory.resident);
  CHECK(copies.metrics.step_seconds != whole.metrics.step_seconds);
}

TEST_CASE("ZeRO 2 is slower to free and never gathers twice") {
  const Forecast three = forecast(test::run_of("torchtitan-2024-12", 32, "dp_shard: -1"));
  const Forecast two =
      forecast(test::run_of("torchtitan-2024-12", 32, "dp_shard: -1, zero_stage: 2"));
  CHECK(two.metrics.memory.allocated > three.metrics.memory.allocated);
  CHECK(two.metrics.step_seconds <= three.metrics.step_seconds);
}

TEST_CASE("smaller states take less memory") {
  const auto resident = [](const char* training) {
    return forecast(
               test::run_of("torchtitan-2024-12", 8, "dp_shard: -1", "recompute: none", training))
        .metrics.memory.resident;
  };
  const auto fp32 = resident("optimizer: adamw");
  CHECK(resident("optimizer: adamw-8bit") < fp32);
  CHECK(resident("optimizer: sgd") < resident("optimizer: adamw-8bit"));
  CHECK(resident("master_dtype: bf16, grad_dtype: bf16, moment_dtype: bf16") < fp32);
}

TEST_CASE("a plan's forecast does not depend on the plans before it") {
  const test::StackRun run(
      test::run_of("megatron-2025-03", 32, "dp_shard: 1, dp_replicate: -1, tp: 2, zero_stage: 1"));
  std::vector<Plan> plans;
  for (const int pp : {1, 2, 4}) {
    for (const int zero : {0, 1}) {
      Plan plan = run.job.plan;
      plan.pp = pp;
      plan.dp_replicate = 16 / pp;
      plan.zero_stage = zero;
      plans.push_back(plan);
    }
  }
  Forecaster forward(run.job.scenario, run.profile), backward(run.job.scenario, run.profile);
  std::vector<double> seconds;
  for (const Plan& plan : plans)
    seconds.push_back(forward.evaluate(plan).step_seconds);
  for (std::size_t i = plans.size(); i-- > 0;) {
    CHECK(backward.evaluate(plans[i]).step_seconds == seconds[i]);
    CHECK(Forecaster(run.job.scenario, run.profile).evaluate(plans[i]).step_seconds == seconds[i]);
  }
}

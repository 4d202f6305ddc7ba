// The two engines read one program and must agree: the analytic one folds it, the event engine
// unrolls it on its own queue. Network sharing, jitter and failures are off.

#include <doctest/doctest.h>

#include <cmath>

#include "model/forecaster.hpp"
#include "sim/engine.hpp"
#include "tests/support/stacks.hpp"
#include "workloads/rules.hpp"

using namespace forerun;

namespace {

constexpr double kAgreement = 1e-9;  // relative

/// A seeded grid over models, PP from 1 to 8 and every way to run a block.
const std::vector<test::PlanList>& grid() {
  static const std::vector<test::PlanList> lists = [] {
    std::vector<test::PlanList> out;
    out.push_back(test::some_plans({.model = "llama3-8b", .gpus = 32, .pp = {1, 2, 4}}, 50, 7));
    out.push_back(test::some_plans({.model = "llama3-70b", .gpus = 64, .pp = {1, 4, 8}}, 40, 8));
    out.push_back(test::some_plans({.model = "llama3-405b", .gpus = 128, .pp = {8, 16}}, 14, 9));
    for (const char* mixture : {"first_k_dense: 0", "first_k_dense: 3", "moe_every: 2"}) {
      const std::string model =
          "{layers: 16, hidden: 2048, ffn_hidden: 8192, heads: 16, kv_heads: 8, vocab: 32000, "
          "experts: 32, top_k: 4, expert_ffn: 1024, shared_experts: 1, qk_norm: true, " +
          std::string(mixture) + "}";
      const test::PlanSpace space{.model = model, .gpus = 16, .pp = {1, 2, 4}, .ep = {1, 4, 8}};
      out.push_back(test::some_plans(space, 30, 10));
    }
    return out;
  }();
  return lists;
}

void check_same(double folded, double unrolled) {
  CHECK(std::abs(folded - unrolled) <= kAgreement * unrolled);
}

/// Both engines on one plan.
void compare(Forecaster& forecaster, const Plan& plan) {
  CAPTURE(test::describe(plan));
  const Metrics folded = forecaster.evaluate(plan);
  const Timeline timeline = forecaster.timeline();
  const std::vector<MemoryFold> memory = forecaster.memory();
  const SimResult unrolled = simulate(forecaster.program(plan));
  check_same(folded.step_seconds, unrolled.step_seconds);
  REQUIRE(timeline.stage_end.size() == unrolled.stage_end.size());
  for (std::size_t s = 0; s < timeline.stage_end.size(); ++s) {
    check_same(timeline.stage_end[s], unrolled.stage_end[s]);
  }
  REQUIRE(memory.size() == unrolled.memory.size());
  for (std::size_t r = 0; r < memory.size(); ++r)
    CHECK(memory[r] == unrolled.memory[r]);
}

}  // namespace

TEST_CASE("the engines agree on a seeded grid of plans") {
  std::size_t plans = 0;
  for (const test::PlanList& list : grid()) {
    Forecaster forecaster(list.scenario, list.profile);
    for (const Plan& plan : list.plans)
      compare(forecaster, plan);
    plans += list.plans.size();
  }
  CHECK(plans >= 100);
}

TEST_CASE("the engines agree on the golden grid") {
  for (const test::PlanList& list : test::golden_plans()) {
    Forecaster forecaster(list.scenario, list.profile);
    for (const Plan& plan : list.plans)
      compare(forecaster, plan);
  }
}

TEST_CASE("the engines agree on every software stack, precision and way of sharding") {
  for (const std::string& yaml : test::runs_of_all_stacks()) {
    CAPTURE(yaml);
    const test::StackRun run(yaml);
    REQUIRE(unsupported_part(run.job.scenario, run.job.plan, run.profile) == "");
    Forecaster forecaster(run.job.scenario, run.profile);
    compare(forecaster, run.job.plan);
  }
}

TEST_CASE("the fold equals unrolling for many microbatches on every plan of the grid") {
  for (const test::PlanList& list : grid()) {
    Forecaster forecaster(list.scenario, list.profile);
    for (Plan plan : list.plans) {
      const std::int64_t stages = plan.stages();
      for (std::int64_t microbatches : {2 * stages + 1, 2 * stages + 7, 10 * stages}) {
        // Interleaved schedules take whole rounds only: the next number that the rules allow.
        do {
          plan.global_batch = microbatches++ * plan.micro_batch * plan.data_parallel();
        } while (first_broken(list.scenario, plan) != nullptr);
        compare(forecaster, plan);
      }
    }
  }
}

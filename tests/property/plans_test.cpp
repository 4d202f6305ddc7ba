// What must hold for any plan, on 200 that are chosen by seed. Kernels and collectives do not slow
// each other here: with interference a faster collective may come to lie beside a kernel that it
// slows.

#include "tests/support/plans.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "model/forecaster.hpp"
#include "workloads/rules.hpp"

using namespace forerun;

namespace {

constexpr ForecasterOptions kApart{.interference = false};
constexpr double kRounding = 1e-12;

const std::vector<test::PlanList>& plans() {
  static const std::vector<test::PlanList> lists = [] {
    std::vector<test::PlanList> out;
    out.push_back(test::some_plans({.model = "llama3-8b", .gpus = 64}, 80, 31));
    out.push_back(test::some_plans({.model = "llama3-70b", .gpus = 256}, 60, 32));
    out.push_back(
        test::some_plans({.model = "llama3-70b", .gpus = 128, .cluster = "dgx-h100"}, 60, 33));
    return out;
  }();
  return lists;
}

/// No plan may take longer on the scenario that `improve` makes better.
void never_slower(const std::function<void(Scenario&)>& improve) {
  std::size_t faster = 0;
  for (const test::PlanList& list : plans()) {
    Scenario better = list.scenario;
    improve(better);
    Forecaster now(list.scenario, list.profile, kApart), then(better, list.profile, kApart);
    for (const Plan& plan : list.plans) {
      CAPTURE(test::describe(plan));
      const double before = now.evaluate(plan).step_seconds;
      const double after = then.evaluate(plan).step_seconds;
      CHECK(after <= before * (1 + kRounding));
      faster += after < before * (1 - kRounding) ? 1 : 0;
    }
  }
  CHECK(faster > 20);  // the improvement reaches the forecasts at all
}

}  // namespace

TEST_CASE("a plan is never slower with faster matrix units") {
  never_slower([](Scenario& s) {
    s.cluster.gpu.peak_bf16.value = s.cluster.gpu.peak_bf16.value * 1.3;
    s.cluster.gpu.peak_fp8.value = s.cluster.gpu.peak_fp8.value * 1.3;
  });
}

TEST_CASE("a plan is never slower with faster HBM") {
  never_slower([](Scenario& s) {
    s.cluster.gpu.hbm_bandwidth.value = s.cluster.gpu.hbm_bandwidth.value * 1.3;
  });
}

TEST_CASE("a plan is never slower with a faster network") {
  never_slower(
      [](Scenario& s) { s.cluster.nic_bandwidth.value = s.cluster.nic_bandwidth.value * 2; });
}

TEST_CASE("a plan is never slower with faster NVLink") {
  never_slower([](Scenario& s) { s.cluster.gpu.nvlink.value = s.cluster.gpu.nvlink.value * 1.5; });
}

TEST_CASE("memory never falls when the microbatch grows and their number stays") {
  for (const test::PlanList& list : plans()) {
    Forecaster forecaster(list.scenario, list.profile);
    for (Plan plan : list.plans) {
      CAPTURE(test::describe(plan));
      const double before = forecaster.evaluate(plan).memory.reserved;
      plan.micro_batch *= 2;
      plan.global_batch *= 2;
      REQUIRE(first_broken(list.scenario, plan) == nullptr);
      CHECK(forecaster.evaluate(plan).memory.reserved >= before);
    }
  }
}

TEST_CASE("the breakdown of a step sums to the step and nothing in it is negative") {
  for (const test::PlanList& list : plans()) {
    Forecaster forecaster(list.scenario, list.profile);
    for (const Plan& plan : list.plans) {
      CAPTURE(test::describe(plan));
      Job job{list.scenario, plan, {}, {}};
      const Forecast f = forecaster.explain(job);
      const double sum = std::accumulate(f.breakdown.begin(), f.breakdown.end(), 0.0);
      CHECK(sum == doctest::Approx(f.metrics.step_seconds).epsilon(1e-9));
      for (const double seconds : f.breakdown)
        CHECK(seconds >= -1e-9 * f.metrics.step_seconds);
    }
  }
}

TEST_CASE("explaining a plan does not change its numbers") {
  for (const test::PlanList& list : plans()) {
    Forecaster sweeping(list.scenario, list.profile), alone(list.scenario, list.profile);
    for (const Plan& plan : list.plans) {
      CAPTURE(test::describe(plan));
      const Metrics swept = sweeping.evaluate(plan);
      const Forecast explained = alone.explain({list.scenario, plan, {}, {}});
      CHECK(explained.metrics.step_seconds == doctest::Approx(swept.step_seconds).epsilon(1e-12));
      CHECK(explained.metrics.memory.reserved == swept.memory.reserved);
    }
  }
}

TEST_CASE("what a plan costs does not depend on the plans before it") {
  const test::PlanList& list = plans()[1];
  Forecaster sweeping(list.scenario, list.profile);
  for (const Plan& plan : list.plans)
    sweeping.evaluate(plan);
  for (auto plan = list.plans.rbegin(); plan != list.plans.rend(); ++plan) {
    CAPTURE(test::describe(*plan));
    Forecaster fresh(list.scenario, list.profile);
    const Metrics again = sweeping.evaluate(*plan);
    CHECK(again.step_seconds == doctest::Approx(fresh.evaluate(*plan).step_seconds).epsilon(1e-12));
    CHECK(again.memory.reserved == fresh.evaluate(*plan).memory.reserved);
  }
}

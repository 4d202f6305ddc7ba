// Full forecasts (timeline and memory) a second on one core, over the fixed seeded list of plans in
// sweep order, lowering of new shapes included; beside it the same list with everything known.

#include <fmt/format.h>

#include <chrono>

#include "model/forecaster.hpp"
#include "tests/support/plans.hpp"

using namespace forerun;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Keeps a result from being optimised away.
double sum_of(Forecaster& forecaster, const std::vector<Plan>& plans) {
  double sum = 0;
  for (const Plan& plan : plans)
    sum += forecaster.evaluate(plan).step_seconds;
  return sum;
}

}  // namespace

int main() {
  constexpr double kFloor = 50000;
  const std::vector<test::PlanList> lists = test::benchmark_plans();
  std::size_t plans = 0, shapes = 0;
  double cold = 0, warm = 0, check = 0;
  for (const test::PlanList& list : lists) {
    const auto begin = Clock::now();
    Forecaster forecaster(list.scenario, list.profile);
    check += sum_of(forecaster, list.plans);
    const double first = seconds_since(begin);
    const auto again = Clock::now();
    check += sum_of(forecaster, list.plans);
    const double second = seconds_since(again);
    const auto n = static_cast<double>(list.plans.size());
    fmt::print("{:<12} {:>6} plans {:>5} shapes  {:>9.0f}/s  all known {:>9.0f}/s\n",
               list.scenario.model.name, list.plans.size(), forecaster.lowering().shapes(),
               n / first, n / second);
    plans += list.plans.size();
    shapes += forecaster.lowering().shapes();
    cold += first;
    warm += second;
  }
  const double rate = static_cast<double>(plans) / cold;
  fmt::print("{:<12} {:>6} plans {:>5} shapes  {:>9.0f}/s  all known {:>9.0f}/s\n", "all", plans,
             shapes, rate, static_cast<double>(plans) / warm);
  fmt::print("ratio to the floor of {:.0f}/s: {:.2f}\n", kFloor, rate / kFloor);
  return check > 0 ? 0 : 1;
}

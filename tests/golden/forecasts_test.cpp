// A fixed grid of forecasts against the last accepted ones (forecasts.csv). A plan that was
// answered and is not any more fails; so does a number that moved by more than 1e-4. To accept what
// is printed:
//   FORERUN_UPDATE=1 ./dev test -R golden
// and say in the same commit why it moved.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/csv.hpp"
#include "model/forecaster.hpp"
#include "tests/support/plans.hpp"

using namespace forerun;

namespace {

constexpr double kDrift = 1e-4;
const char* const kFile = FORERUN_TEST_ROOT "/golden/forecasts.csv";

struct Golden {
  double step_time_s = 0, peak_mem_gib = 0, allocated_gib = 0;
};

/// By what tells the plans apart.
std::map<std::string, Golden> forecasts() {
  std::map<std::string, Golden> out;
  for (const test::PlanList& list : test::golden_plans()) {
    Forecaster forecaster(list.scenario, list.profile);
    for (const Plan& plan : list.plans) {
      const Metrics m = forecaster.evaluate(plan);
      out[test::describe(list.scenario, plan)] = {m.step_seconds, m.memory.reserved / kGiB,
                                                  m.memory.allocated / kGiB};
    }
  }
  return out;
}

std::map<std::string, Golden> accepted() {
  const CsvTable table = read_csv_file(kFile);
  std::map<std::string, Golden> out;
  for (const CsvTable::Row& row : table.rows()) {
    const auto number = [&](const char* column) {
      return std::stod(std::string(table.cell(row, column)));
    };
    out[std::string(table.cell(row, "plan"))] = {number("step_time_s"), number("peak_mem_gib"),
                                                 number("allocated_gib")};
  }
  return out;
}

void write(const std::map<std::string, Golden>& forecasts) {
  std::ofstream file(kFile);
  file << "plan,step_time_s,peak_mem_gib,allocated_gib\n";
  for (const auto& [plan, g] : forecasts) {
    file << fmt::format("{},{:.8g},{:.8g},{:.8g}\n", csv_cell(plan), g.step_time_s, g.peak_mem_gib,
                        g.allocated_gib);
  }
}

void check_drift(const std::string& what, double now, double before) {
  CHECK_MESSAGE(std::abs(now / before - 1) <= kDrift,
                what << " " << before << " -> " << now << " ("
                     << fmt::format("{:+.3f}%", 100 * (now / before - 1)) << ")");
}

}  // namespace

TEST_CASE("no forecast of the golden grid has drifted unnoticed") {
  const std::map<std::string, Golden> now = forecasts();
  if (std::getenv("FORERUN_UPDATE") != nullptr) write(now);
  const std::map<std::string, Golden> before = accepted();
  CHECK(before.size() == 120);
  for (const auto& [plan, golden] : before) {
    CAPTURE(plan);
    const auto found = now.find(plan);
    if (found == now.end()) {
      FAIL_CHECK("was answered and is not any more");
      continue;
    }
    check_drift("step_time_s", found->second.step_time_s, golden.step_time_s);
    check_drift("peak_mem_gib", found->second.peak_mem_gib, golden.peak_mem_gib);
    check_drift("allocated_gib", found->second.allocated_gib, golden.allocated_gib);
  }
}

// Damaged tables of published runs: every row gets its line, whatever it holds.

#include "calibration/runs_table.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "calibration/validate.hpp"
#include "tests/fuzz/mutator.hpp"
#include "tests/support/plans.hpp"

namespace forerun::test {
namespace {

/// The header and every tenth row of torchtitan's runs.
CsvTable some_runs() {
  const CsvTable all(source_text("calibration/runs/torchtitan.csv"), "runs.csv");
  std::string text;
  const auto add = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i)
      text += (i == 0 ? "" : ",") + csv_cell(cells[i]);
    text += "\n";
  };
  add(all.columns());
  for (std::size_t i = 0; i < all.rows().size(); i += 10)
    add(all.rows()[i].cells);
  return CsvTable(text, "runs.csv");
}

std::string text_of(const CsvTable& table) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i)
      text += (i == 0 ? "" : ",") + csv_cell(cells[i]);
    text += "\n";
  };
  add(table.columns());
  for (const CsvTable::Row& row : table.rows())
    add(row.cells);
  return text;
}

ValidateRequest request() {
  ValidateRequest out;
  out.read.use_measured_network = true;
  out.predictor = [](const Job& job) {
    Forecast forecast;
    forecast.job = job;
    forecast.ranks.emplace_back();
    return forecast;
  };
  return out;
}

/// Every row has its id and one of the three kinds of status.
void validate_text(const std::string& text, int& answered) {
  static const DataPath data = source_data();
  const CsvTable table(checked_utf8(text, "runs.csv"), "runs.csv");
  const std::vector<ValidatedRow> rows = validate(table, data, Residuals(), request());
  CHECK(rows.size() == table.rows().size());
  for (const ValidatedRow& row : rows) {
    const bool ok = row.status == "ok";
    CHECK(ok == row.forecast.has_value());
    CHECK((ok || row.status.starts_with("invalid: ") || row.status.starts_with("unsupported: ")));
    answered += ok ? 1 : 0;
  }
}

}  // namespace

TEST_CASE("every row of damaged tables of runs has a status") {
  const std::string runs = text_of(some_runs());
  int before = 0;
  validate_text(runs, before);
  CHECK(before > 3);
  Mutator mutated(41);
  Outcomes outcomes;
  int answered = 0;
  for (int i = 0; i < 120; ++i) {
    const std::string text = mutated(runs);
    outcomes.expect_known(text, [&] { validate_text(text, answered); });
  }
  CHECK(outcomes.values > 20);
  CHECK(answered > 100);
}

TEST_CASE("cells of zero, huge numbers and words leave no row without status") {
  const CsvTable runs = some_runs();
  const std::vector<std::string> cells{"0",
                                       "1",
                                       "-1",
                                       "3",
                                       "7",
                                       "64",
                                       "1e15",
                                       "1e300",
                                       "nan",
                                       "inf",
                                       "0.5",
                                       "16777216",
                                       "2147483648",
                                       "4294967296",
                                       "1073741824",
                                       "9223372036854775807",
                                       "x",
                                       "",
                                       "bf16",
                                       "1f1b",
                                       "gpipe",
                                       "ring",
                                       "h100-sxm-80gb",
                                       "../../x",
                                       "\xC3\xA9",
                                       "fp8",
                                       "full",
                                       "lora",
                                       "muon",
                                       "last"};
  std::string header;
  for (const std::string& column : runs.columns())
    header += csv_cell(column) + ",";
  Mutator random(42);
  Outcomes outcomes;
  int answered = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::string> row = random.one_of(runs.rows()).cells;
    std::string text = header + "logged_rank\n";
    for (std::size_t n = 1 + random.below(4); n > 0; --n)
      row[random.below(row.size())] = random.one_of(cells);
    for (const std::string& cell : row)
      text += csv_cell(cell) + ",";
    text += "last\n";
    outcomes.expect_known(text, [&] { validate_text(text, answered); });
  }
  CHECK(outcomes.values == 1000);
  CHECK(answered > 100);
}

}  // namespace forerun::test

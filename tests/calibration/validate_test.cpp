// A prediction depends on what a run is, never on what was measured of it or where it stands.

#include "calibration/validate.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "report/report.hpp"
#include "study/predict.hpp"
#include "tests/calibration/table.hpp"

using namespace forerun;

namespace {

const std::set<std::string> kMeasured{"tokens_s_gpu",
                                      "tflops_gpu",
                                      "mfu",
                                      "step_time_s",
                                      "peak_mem_gib",
                                      "allocated_gib",
                                      "static_allocated_bytes",
                                      "peak_allocated_bytes",
                                      "status",
                                      "state",
                                      "suspect",
                                      "near_limit",
                                      "source",
                                      "provenance",
                                      "notes"};

const StudyContext& context() {
  static const StudyContext c(test::source_data());
  return c;
}

std::vector<ValidatedRow> validated(const CsvTable& table) {
  ValidateRequest request;
  request.predictor = [](const Job& job) {
    PredictRequest one;
    one.job = job;
    one.rank_assumptions = false;
    return predict(one, context()).forecast;
  };
  return validate(table, context().data, context().residuals, request);
}

CsvTable published() {
  return read_csv_file(FORERUN_TEST_SOURCE "/calibration/runs/torchtitan.csv");
}

/// The lines of the answer by id.
std::map<std::string, std::string> lines_of(const std::vector<ValidatedRow>& rows) {
  std::map<std::string, std::string> out;
  for (const ValidatedRow& row : rows)
    out[row.id] = validation_csv({row});
  return out;
}

std::string text_of(const CsvTable& table, const std::vector<std::size_t>& order,
                    const std::string& in_measured) {
  std::string text;
  for (const std::string& column : table.columns())
    text += (text.empty() ? "" : ",") + csv_cell(column);
  text += "\n";
  for (const std::size_t r : order) {
    for (std::size_t c = 0; c < table.columns().size(); ++c) {
      const bool measured = kMeasured.count(table.columns()[c]) == 1;
      text += (c > 0 ? "," : "") + csv_cell(measured ? in_measured : table.rows()[r].cells[c]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("shuffling the rows and blanking or spoiling what was measured changes no prediction") {
  const CsvTable table = published();
  const auto first = lines_of(validated(table));
  REQUIRE(first.size() == table.rows().size());
  std::vector<std::size_t> order(table.rows().size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::mt19937 random(5);
  for (const std::string in_measured : {"", "12345", "no number"}) {
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random() % i]);
    const CsvTable changed(text_of(table, order, in_measured), "changed.csv");
    CHECK(lines_of(validated(changed)) == first);
  }
}

TEST_CASE("the published table has the columns whose blanking is tested") {
  const CsvTable table = published();
  for (const char* column : {"tokens_s_gpu", "tflops_gpu", "mfu", "peak_mem_gib", "notes"})
    CHECK(table.has(column));
}

TEST_CASE("every row gets its line, in order, whatever it holds") {
  test::Cells wrong = test::plain_cells(), missing = wrong, broken = wrong;
  wrong["id"] = "wrong";
  wrong["gpus"] = "eight";
  missing["id"] = "missing";
  missing["hardware"] = "B900";
  broken["id"] = "broken";
  broken["kv_heads"] = "5";
  const auto rows = validated(test::table_of({wrong, test::plain_cells(), missing, broken}));
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].status == "invalid: gpus: found 'eight', a number is wanted");
  CHECK(rows[1].status == "ok");
  CHECK(rows[1].forecast.has_value());
  CHECK(rows[2].status == "unsupported: GPU b900");
  CHECK(rows[3].status.starts_with("invalid: model.kv_heads"));
  for (const std::size_t i : {0U, 2U, 3U})
    CHECK(!rows[i].forecast);
  CHECK(rows[0].place.line == 2);
  CHECK(rows[3].place.line == 5);
}

TEST_CASE("the printed memory follows the kind and the rank that the row logged") {
  test::Cells cells = test::plain_cells();
  cells["pp"] = "4";
  cells["vocab"] = "32000";  // with a small head the first rank is the fullest
  cells["peak_mem_kind"] = cells["logged_rank"] = "";
  test::Cells allocated = cells, device = cells, last = cells;
  allocated["peak_mem_kind"] = "allocated";
  device["peak_mem_kind"] = "nvidia-smi";
  last["logged_rank"] = "last";
  const auto rows = validated(test::table_of({cells, allocated, device, last}));
  for (const ValidatedRow& row : rows)
    REQUIRE(row.status == "ok");
  const Forecast& f = *rows[0].forecast;
  CHECK(rows[0].peak_mem_gib.value == f.metrics.memory.reserved / kGiB);
  CHECK(rows[1].peak_mem_gib.value == f.metrics.memory.allocated / kGiB);
  CHECK(rows[2].peak_mem_gib.value == f.metrics.memory.device / kGiB);
  CHECK(rows[3].peak_mem_gib.value == f.ranks.back().reserved / kGiB);
  CHECK(rows[0].peak_mem_gib.value != rows[3].peak_mem_gib.value);
}

TEST_CASE("a table without the columns that tell what a run is, is refused") {
  for (const char* gone : {"id", "gpus", "seq_len"}) {
    test::Cells cells = test::plain_cells();
    cells.erase(gone);
    const CsvTable table = test::table_of({cells});
    CHECK_THROWS_AS(validated(table), InputError);
  }
}

TEST_CASE("residuals are measured over predicted, without suspect rows, by stack and in all") {
  std::vector<test::Cells> cells(5, test::plain_cells());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i]["tokens_s_gpu"] = cells[i]["suspect"] = cells[i]["peak_mem_gib"] = "";
  }
  const double predicted =
      validated(test::table_of(cells))[0].forecast->metrics.tokens_per_second_gpu;
  const double ratios[] = {0.9, 1.0, 1.1, 1.2, 7};
  for (std::size_t i = 0; i < cells.size(); ++i)
    cells[i]["tokens_s_gpu"] = std::to_string(ratios[i] * predicted);
  cells[4]["suspect"] = "1";
  const CsvTable table = test::table_of(cells);
  const Residuals r = residuals_of(table, validated(table));
  for (const char* stack : {"torchtitan-2024-12", "not listed"}) {
    CHECK(r.of(stack).speed.runs == 4);
    CHECK(r.of(stack).speed.median == doctest::Approx(1.05));
    CHECK(r.of(stack).memory.runs == 0);
  }
}

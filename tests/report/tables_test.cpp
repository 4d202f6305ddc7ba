// Results as tables, read back.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/yaml.hpp"
#include "report/report.hpp"
#include "tests/report/explained.hpp"

using namespace forerun;
using Json = nlohmann::json;

namespace {

const SweepResult& swept() {
  static const SweepResult result = [] {
    SweepRequest request;
    request.space.run = parse_yaml(
        "cluster: {name: grand-teton-h100-95gb, gpus: 16}\nmodel: llama3-8b\n"
        "training: {sequence_length: 8192, micro_batch: 1, global_batch: 64}\n"
        "software: torchtitan-2024-12\n",
        "run.yaml");
    const Node axes = parse_yaml(
        "parallelism.tp: [1, 2]\n"
        "execution.recompute: [none, full]\n"
        "parallelism.mesh_order: [[pp, dp_replicate, dp_shard, cp, tp]]\n",
        "axes.yaml");
    for (const Node::Entry& axis : axes.entries)
      request.space.axes.push_back({axis.key, axis.value.items});
    return sweep(request, test::context());
  }();
  return result;
}

/// The numbers of a point by column.
std::vector<std::pair<std::string, double>> numbers_of(const SweepPoint& p) {
  return {{"tokens_s_gpu", p.metrics.tokens_per_second_gpu},
          {"step_time_s", p.metrics.step_seconds},
          {"mfu", p.metrics.mfu},
          {"peak_mem_gib", p.metrics.memory.reserved / kGiB}};
}

ValidatedRow answered(std::string id) {
  ValidatedRow row;
  row.id = std::move(id);
  row.status = "ok";
  row.forecast = test::explained(test::job_of(test::kEight));
  row.peak_mem_gib = {50, 40, 60};
  return row;
}

}  // namespace

TEST_CASE("a sweep's CSV rows are its points, to the last digit") {
  const CsvTable table(sweep_csv(swept()), "sweep.csv");
  REQUIRE(swept().top.size() >= 2);
  REQUIRE(table.rows().size() == swept().top.size());
  for (std::size_t i = 0; i < swept().top.size(); ++i) {
    const CsvTable::Row& row = table.rows()[i];
    const SweepPoint& point = swept().top[i];
    REQUIRE(row.cells.size() == swept().keys.size() + 4);
    for (std::size_t k = 0; k < swept().keys.size(); ++k)
      CHECK(table.cell(row, swept().keys[k]) == point.values[k]);
    for (const auto& [column, value] : numbers_of(point))
      CHECK(std::stod(std::string(table.cell(row, column))) == value);
  }
}

TEST_CASE("a sweep's JSON lines are its points, to the last digit") {
  std::istringstream lines(sweep_jsonl(swept()));
  std::string line;
  std::size_t i = 0;
  for (; std::getline(lines, line); ++i) {
    REQUIRE(i < swept().top.size());
    const Json point = Json::parse(line);
    for (std::size_t k = 0; k < swept().keys.size(); ++k)
      CHECK(point["settings"][swept().keys[k]] == swept().top[i].values[k]);
    for (const auto& [key, value] : numbers_of(swept().top[i]))
      CHECK(point[key].get<double>() == value);
  }
  CHECK(i == swept().top.size());
}

TEST_CASE("the sweep's document counts what its result counts") {
  const Json d = Json::parse(sweep_json(swept()));
  for (const char* key : {"points_total", "points_valid", "points_forecast", "points_rejected",
                          "points_pruned", "seconds", "jobs", "best", "top", "pareto"})
    CHECK_MESSAGE(d.contains(key), key);
  CHECK(d["points_total"] == 4);
  CHECK(d["points_valid"] == swept().points_valid);
  CHECK(d["top"].size() == swept().top.size());
  CHECK(d["pareto"].size() == swept().pareto.size());
  CHECK(d["best"]["forecast"]["tokens_s_gpu"] == d["top"][0]["tokens_s_gpu"]);
}

TEST_CASE("the columns of a validation stand in their fixed order") {
  const CsvTable table(validation_csv({}), "predictions.csv");
  std::vector<std::string> expected{"id", "status"};
  for (const char* number :
       {"tokens_s_gpu", "step_time_s", "tflops_gpu", "mfu", "peak_mem_gib", "allocated_gib"}) {
    for (const char* end : {"", "_low", "_high"})
      expected.push_back(std::string(number) + end);
  }
  for (const char* last : {"fits", "p_fits", "assumptions", "top_assumption"})
    expected.emplace_back(last);
  REQUIRE(table.columns().size() >= expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(table.columns()[i] == expected[i]);
}

TEST_CASE("every validated row is a line, with empty numbers where there is no answer") {
  ValidatedRow refused;
  refused.id = "b, \"quoted\"";
  refused.status = "invalid: gpus: found 'x', a number is wanted";
  const ValidatedRow a = answered("a");
  const CsvTable table(validation_csv({a, refused}), "predictions.csv");
  REQUIRE(table.rows().size() == 2);
  const auto cell = [&](std::size_t row, const char* column) {
    return std::string(table.cell(table.rows()[row], column));
  };
  const auto number = [&](const char* column) { return std::stod(cell(0, column)); };
  CHECK(number("tokens_s_gpu") == doctest::Approx(a.forecast->tokens_s_gpu.value).epsilon(1e-9));
  CHECK(number("step_time_s_high") == doctest::Approx(a.forecast->step_time.high).epsilon(1e-9));
  CHECK(number("peak_mem_gib") == 50);  // the row's own kind, not the forecast's
  CHECK(number("peak_mem_gib_low") == 40);
  CHECK(number("allocated_gib") == doctest::Approx(a.forecast->metrics.memory.resident / kGiB));
  CHECK(cell(0, "fits") == (a.forecast->metrics.fits ? "true" : "false"));
  CHECK(table.rows()[1].cells.size() == table.columns().size());
  CHECK(cell(1, "id") == refused.id);
  CHECK(cell(1, "status") == refused.status);
  for (std::size_t i = 2; i < table.columns().size(); ++i)
    CHECK(table.rows()[1].cells[i].empty());
}

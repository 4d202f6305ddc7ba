// Scores of tables small enough to reckon by hand.

#include "calibration/score.hpp"

#include <doctest/doctest.h>

#include "tests/base/expect.hpp"

using namespace forerun;

namespace {

/// An answer of so many tokens a second and GiB, sure to 10% and 20%.
ValidatedRow answer(const std::string& id, double tokens, double gib,
                    const std::string& software = "stack") {
  ValidatedRow row;
  row.id = id;
  row.status = "ok";
  Forecast f;
  f.job.scenario.software.name = software;
  f.tokens_s_gpu = {tokens, 0.9 * tokens, 1.1 * tokens};
  f.metrics.tokens_per_second_gpu = tokens;
  f.metrics.step_seconds = 1000 / tokens;
  f.metrics.model_flops_gpu = 1e9 * tokens;
  f.step_time = {1000 / tokens, 900 / tokens, 1100 / tokens};
  row.forecast = f;
  row.peak_mem_gib = {gib, 0.8 * gib, 1.2 * gib};
  return row;
}

ValidatedRow refused(const std::string& id, const std::string& status) {
  ValidatedRow row;
  row.id = id;
  row.status = status;
  return row;
}

}  // namespace

TEST_CASE("errors, coverage and bias by hand") {
  const CsvTable runs(
      "id,tokens_s_gpu,step_time_s,peak_mem_gib,peak_mem_kind,suspect\n"
      "a,100,,50,reserved,\n"     // predicted 110: +10%, inside 99..121
      "b,100,,50,,\n"             // predicted 80: -20%, outside 72..88
      "c,,10,50,theoretical,0\n"  // 1000 / 200 = 5 s: -50% on the step time, outside 4.5..5.5
      "d,100,,,,1\n"              // suspect: counts for nothing
      "e,,,,,\n",                 // nothing measured
      "runs.csv");
  const Score s = score(runs,
                        {answer("a", 110, 60), answer("b", 80, 40), answer("c", 200, 1, "other"),
                         answer("d", 900, 900), answer("e", 1, 1)},
                        nullptr);
  CHECK(s.rows == 5);
  CHECK(s.speed.runs == 3);
  CHECK(s.speed.median == doctest::Approx(0.20));
  CHECK(s.speed.mean == doctest::Approx(0.8 / 3));
  CHECK(s.speed.p90 == doctest::Approx(0.50));
  CHECK(s.speed.bias == doctest::Approx(-0.20));
  CHECK(s.speed.covered == doctest::Approx(1.0 / 3));
  CHECK(s.speed.half_width == doctest::Approx(0.10));
  CHECK(s.memory.runs == 2);  // +20% and -20%; a theoretical number is no measurement
  CHECK(s.memory.median == doctest::Approx(0.20));
  CHECK(s.memory.bias == doctest::Approx(0).epsilon(1e-12));
  CHECK(s.memory.covered == 0.5);  // 48..72 holds 50, 32..48 does not
  CHECK(s.speed_by_software.at("stack").runs == 2);
  CHECK(s.speed_by_software.at("stack").median == doctest::Approx(0.15));
  CHECK(s.speed_by_software.at("other").runs == 1);
  CHECK(!s.pairs);
}

TEST_CASE("nine errors in ten lie within the 90% error, and not all of ten") {
  // Errors of 1% .. 10%: nine of ten are within 9%.
  std::string text = "id,tokens_s_gpu\n";
  std::vector<ValidatedRow> rows;
  for (int i = 1; i <= 10; ++i) {
    text += std::to_string(i) + ",100\n";
    rows.push_back(answer(std::to_string(i), 100 + i, 1));
  }
  CHECK(score(CsvTable(text, "runs.csv"), rows, nullptr).speed.p90 == doctest::Approx(0.09));
}

TEST_CASE("rows without an answer are counted by their status") {
  const CsvTable runs("id,tokens_s_gpu\na,100\nb,100\nc,100\nd,100\n", "runs.csv");
  const Score s = score(runs,
                        {answer("a", 100, 1), refused("b", "invalid: gpus: found 'x'"),
                         refused("c", "invalid: tp: found 'y'"), refused("d", "unsupported: LoRA")},
                        nullptr);
  CHECK(s.statuses ==
        std::map<std::string, int>{{"ok", 1}, {"invalid", 2}, {"unsupported: LoRA", 1}});
  CHECK(s.speed.runs == 1);
}

TEST_CASE("pairs: right and wrong orders, ties, memory and what is not answered") {
  const CsvTable runs("id\na\nb\nc\nd\n", "runs.csv");
  const std::vector<ValidatedRow> rows{answer("a", 100, 40), answer("b", 110, 50),
                                       answer("c", 102, 40), refused("d", "unsupported: LoRA")};
  const CsvTable pairs(
      "id_a,id_b,metric,speed_ratio_b_over_a,mem_delta_gib\n"
      "a,b,tokens_s_gpu,1.2,5\n"   // faster, as predicted; memory grows, as predicted
      "b,a,tokens_s_gpu,1.2,5\n"   // both wrong
      "a,b,step_time_s,1.2,1.5\n"  // ratio of speeds, also from step times; 1.5 GiB is no matter
      "a,b,tflops_gpu,0.8,-3\n"    // wrong, wrong
      "a,c,tokens_s_gpu,1.01,\n"   // a tie, called within 5%
      "a,b,tokens_s_gpu,1.02,\n"   // a tie, predicted 10% apart
      "a,d,tokens_s_gpu,1.2,\n"    // no answer
      "a,x,tokens_s_gpu,1.2,\n"    // no such run
      "a,b,tokens_s_gpu,,9\n",     // nothing measured
      "pairs.csv");
  const PairSummary p = *score(runs, rows, &pairs).pairs;
  CHECK(p.right == 2);
  CHECK(p.wrong == 2);
  CHECK(p.ties_close == 1);
  CHECK(p.ties_apart == 1);
  CHECK(p.memory_right == 1);
  CHECK(p.memory_wrong == 2);
  CHECK(p.unanswered == 2);
}

TEST_CASE("a table of pairs that lacks a column is refused") {
  const CsvTable runs("id\na\n", "runs.csv");
  const CsvTable pairs("id_a,id_b,metric\na,a,tokens_s_gpu\n", "pairs.csv");
  const std::string message = test::input_error([&] { score(runs, {answer("a", 1, 1)}, &pairs); });
  CHECK(test::contains(message, "pairs.csv:1: speed_ratio_b_over_a"));
}

TEST_CASE("a measured number is one above zero, alone in its cell") {
  CHECK(measured_number("12.5") == 12.5);
  CHECK(measured_number("1e3") == 1000);
  for (const char* cell : {"", "0", "-1", "12 GiB", "nan", "inf", "about 5", " 5"})
    CHECK_MESSAGE(!measured_number(cell), cell);
}

#include "calibration/residuals.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/base/expect.hpp"
#include "tests/base/temporary_folder.hpp"

using namespace forerun;
using test::contains;
using test::TemporaryFolder;

namespace {

constexpr const char* kFile = "calibration/residuals.yaml";
const std::string kGood = "{low: 0.8, median: 1.0, high: 1.3, runs: 9}";

Residuals read(const std::string& text) {
  const TemporaryFolder folder;
  folder.write(kFile, text);
  return Residuals::load(DataPath({folder.path()}));
}

std::string refusal(const std::string& spread) {
  return test::input_error([&] { read("stack:\n  speed: " + spread + "\n  memory: " + kGood); });
}

/// A forecast of 100 s, 1000 tokens/s and 40 GiB of an 80 GiB GPU.
Forecast forecast() {
  Forecast f;
  f.job.scenario.software.name = "stack";
  f.job.scenario.cluster.gpu.memory.value = Bytes(80 * kGiB);
  f.metrics.step_seconds = 100;
  f.metrics.tokens_per_second_gpu = 1000;
  f.metrics.mfu = 0.4;
  f.metrics.model_flops_gpu = 4e14;
  f.metrics.memory.resident = 20 * kGiB;
  f.metrics.memory.reserved = 40 * kGiB;
  f.metrics.memory.device = 42 * kGiB;
  return f;
}

}  // namespace

TEST_CASE("residuals are read by stack, and one that is not listed has those of all") {
  const Residuals r = read(
      "all:\n  speed: {low: 0.5, median: 0.9, high: 1.1, runs: 30}\n"
      "  memory: " +
      kGood +
      "\nstack:\n  speed: {low: 0.7, median: 0.95, high: 1.2, runs: 9}\n"
      "  memory: {low: 0.9, median: 1.0, high: 1.4, runs: 8}\n");
  CHECK(r.of("stack").speed.low == 0.7);
  CHECK(r.of("stack").speed.median == 0.95);
  CHECK(r.of("stack").speed.high == 1.2);
  CHECK(r.of("stack").speed.runs == 9);
  CHECK(r.of("stack").memory.high == 1.4);
  CHECK(r.of("another").speed.low == 0.5);
  CHECK(r.of("another").speed.runs == 30);
}

TEST_CASE("without a word on all, an unknown stack has the wide default") {
  const Residuals r = read("stack:\n  speed: " + kGood + "\n  memory: " + kGood);
  CHECK(r.of("another").speed.low == Spread().low);
  CHECK(r.of("another").speed.high == Spread().high);
  CHECK(r.of("another").speed.runs == 0);
}

TEST_CASE("a spread that is not one is refused with its place") {
  CHECK(refusal(kGood) == "no error");
  const std::string order = "low, median and high must be above 0 and rise";
  CHECK(contains(refusal("{low: 0, median: 1, high: 2, runs: 1}"), order));
  CHECK(contains(refusal("{low: -1, median: 1, high: 2, runs: 1}"), order));
  CHECK(contains(refusal("{low: 1.1, median: 1, high: 2, runs: 1}"), order));
  CHECK(contains(refusal("{low: 0.5, median: 1, high: 0.9, runs: 1}"), order));
  CHECK(contains(refusal("{low: 0.5, median: 1, high: 0.9, runs: 1}"), "residuals.yaml:2:"));
  CHECK(contains(refusal("{low: 0.5, median: 1, high: 0.9, runs: 1}"), "stack.speed"));
  for (const char* bad :
       {"{low: 0.5, median: 1, high: .inf, runs: 1}", "{low: .nan, median: 1, high: 2, runs: 1}",
        "{low: 0.5, median: .nan, high: 2, runs: 1}", "{low: 0.5, median: 1, high: 2, runs: -1}",
        "{low: 0.5, median: 1, high: 2, runs: 1.5}", "{low: 0.5, median: 1, high: 2}",
        "{low: 0.5, median: 1, high: 2, runs: 1, mean: 1}", "[0.5, 1, 2]"}) {
    CHECK_MESSAGE(contains(refusal(bad), "stack.speed"), bad);
  }
  CHECK(contains(test::input_error([] { read("- a\n"); }), "a mapping of software stacks"));
}

TEST_CASE(
    "an interval holds its value and is never empty, even where all forecasts erred one way") {
  for (const Spread& s : {Spread{0.8, 1, 1.3, 9}, Spread{1.1, 1.2, 1.4, 9},
                          Spread{0.5, 0.6, 0.7, 9}, Spread{1, 1, 1, 9}}) {
    Residuals r;
    r.set("stack", {s, s});
    Forecast f = forecast();
    r.apply(f);
    CAPTURE(s.low);
    for (const Interval& i :
         {f.step_time, f.tokens_s_gpu, f.tflops_gpu, f.mfu, f.peak_mem, f.allocated}) {
      CHECK(i.low <= i.value);
      CHECK(i.value <= i.high);
    }
    CHECK(f.p_fits >= 0);
    CHECK(f.p_fits <= 1);
  }
}

TEST_CASE("fast ends of speed are short ends of time") {
  Residuals r;
  r.set("stack", {{0.8, 1, 1.25, 9}, {0.9, 1, 1.5, 9}});
  Forecast f = forecast();
  r.apply(f);
  CHECK(f.tokens_s_gpu.low == doctest::Approx(800));
  CHECK(f.tokens_s_gpu.high == doctest::Approx(1250));
  CHECK(f.step_time.low == doctest::Approx(80));    // 100 s / 1.25
  CHECK(f.step_time.high == doctest::Approx(125));  // 100 s / 0.8
  CHECK(f.peak_mem.low == doctest::Approx(36));
  CHECK(f.peak_mem.high == doctest::Approx(60));
  CHECK(f.allocated.high == doctest::Approx(30));
}

TEST_CASE("the probability to fit is one half where the median need is the GPU's memory") {
  Residuals r;
  r.set("stack", {{0.8, 1, 1.25, 9}, {0.8, 1.25, 1.6, 9}});
  Forecast f = forecast();
  f.metrics.memory.device = 64 * kGiB;  // x 1.25 = 80
  r.apply(f);
  CHECK(f.p_fits == doctest::Approx(0.5));
  f.metrics.memory.device = 60 * kGiB;
  r.apply(f);
  CHECK(f.p_fits > 0.5);
  f.metrics.memory.device = 50 * kGiB;  // the 95% quantile, 1.6 times it, is the GPU's memory
  r.set("stack", {{0.8, 1, 1.25, 9}, {1 / 1.6, 1, 1.6, 9}});
  r.apply(f);
  CHECK(f.p_fits == doctest::Approx(0.95).epsilon(1e-3));
}

TEST_CASE("quantiles lie between the ratios, and few ratios say nothing") {
  // 21 ratios 1.00, 1.01 .. 1.20: the 5% quantile is the second, the 95% the last but one.
  std::vector<double> ratios;
  for (int i = 20; i >= 0; --i)
    ratios.push_back(1 + 0.01 * i);
  const Spread s = spread_of(ratios);
  CHECK(s.low == doctest::Approx(1.01));
  CHECK(s.median == doctest::Approx(1.10));
  CHECK(s.high == doctest::Approx(1.19));
  CHECK(s.runs == 21);
  CHECK(spread_of({1, 2, 3}).low == Spread().low);
  CHECK(spread_of({1, 2, 3}).runs == 3);
  CHECK(spread_of({1, 2, 3, 5}).median == 2.5);
}

TEST_CASE("what is written reads back") {
  Residuals r;
  r.set("all", {{0.5, 0.9, 1.1, 30}, {0.8, 1, 1.3, 9}});
  r.set("stack", {{0.7, 0.95, 1.2, 9}, {0.9, 1, 1.4, 8}});
  const Residuals again = read(r.text());
  CHECK(again.text() == r.text());
  CHECK(again.of("stack").memory.high == 1.4);
  CHECK(again.of("another").speed.low == 0.5);
}

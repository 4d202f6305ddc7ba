#include "study/compare.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/base/expect.hpp"
#include "tests/study/runs.hpp"

using namespace forerun;
using test::contains;

namespace {

CompareResult compared(const std::vector<Job>& jobs) {
  CompareRequest request;
  request.jobs = jobs;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    request.names.push_back(std::string(1, static_cast<char>('A' + i)));
  return compare(request, test::context());
}

Job twice_the_tokens() {
  Job job = test::sixteen();
  job.plan.global_batch *= 2;
  return job;
}

std::vector<Job> some_jobs() {
  return {test::sixteen(),
          test::sixteen("execution: {compile: true}\n"),
          test::sixteen("parallelism: {tp: 8}\n"),
          test::sixteen("execution: {recompute: full}\n"),
          test::sixteen("parallelism: {pp: 2}\n"),
          twice_the_tokens()};
}

double seconds_per_million(const Forecast& f) {
  return 1e6 / f.tokens_s_gpu.value;
}

}  // namespace

TEST_CASE("the terms sum to the difference between the runs") {
  const CompareResult r = compared(some_jobs());
  REQUIRE(r.comparisons.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    const Breakdown& terms = r.comparisons[i].difference;
    const double difference =
        seconds_per_million(r.forecasts[i + 1]) - seconds_per_million(r.forecasts[0]);
    CHECK(std::accumulate(terms.begin(), terms.end(), 0.0) ==
          doctest::Approx(difference).epsilon(1e-9));
    CHECK(r.comparisons[i].memory_gib ==
          r.forecasts[i + 1].peak_mem.value - r.forecasts[0].peak_mem.value);
  }
}

TEST_CASE("with the same tokens the terms are the step times' own, in proportion") {
  const CompareResult r = compared({test::sixteen(), test::sixteen("execution: {compile: true}")});
  // 64 x 8192 tokens over 16 GPUs a step.
  const double steps = 1e6 / (64 * 8192.0 / 16);
  for (std::size_t c = 0; c < kCategories; ++c) {
    const double seconds = r.forecasts[1].breakdown[c] - r.forecasts[0].breakdown[c];
    CHECK(r.comparisons[0].difference[c] == doctest::Approx(steps * seconds).epsilon(1e-9));
  }
}

TEST_CASE("a run against itself is a tie: even odds and no difference") {
  const CompareResult r = compared({test::sixteen(), test::sixteen()});
  const Comparison& c = r.comparisons.at(0);
  CHECK(c.speed_ratio.value == 1);
  CHECK(c.speed_ratio.low < 1);
  CHECK(c.speed_ratio.low * c.speed_ratio.high == doctest::Approx(1));  // as likely either way
  CHECK(c.memory_gib == 0);
  for (const double seconds : c.difference)
    CHECK(seconds == 0);
  CHECK(c.verdict.starts_with("too close to call (+0.0%"));
  CHECK(r.warnings.empty());
}

TEST_CASE("exchanging two runs inverts their ratio and keeps the better one") {
  const std::vector<Job> jobs = some_jobs();
  int called = 0;
  for (std::size_t i = 1; i < jobs.size(); ++i) {
    const Comparison there = compared({jobs[0], jobs[i]}).comparisons[0];
    const Comparison back = compared({jobs[i], jobs[0]}).comparisons[0];
    CHECK(there.speed_ratio.value * back.speed_ratio.value == doctest::Approx(1));
    CHECK(there.speed_ratio.low * back.speed_ratio.high == doctest::Approx(1));
    CHECK(there.speed_ratio.high * back.speed_ratio.low == doctest::Approx(1));
    CHECK(there.memory_gib == -back.memory_gib);
    for (std::size_t c = 0; c < kCategories; ++c)
      CHECK(there.difference[c] == doctest::Approx(-back.difference[c]));
    if (there.verdict.starts_with("too close")) {
      CHECK(back.verdict.starts_with("too close"));
      continue;
    }
    ++called;
    const bool first = there.verdict.starts_with("A by ");
    CHECK(back.verdict.substr(1) == there.verdict.substr(1));  // the same gain
    CHECK(back.verdict.starts_with(first ? "B by " : "A by "));
    CHECK((there.speed_ratio.value < 1) == first);
  }
  CHECK(called >= 1);
}

TEST_CASE("the interval of a ratio is narrower than either run's own") {
  const CompareResult r = compared({test::sixteen(), test::sixteen("execution: {compile: true}")});
  const auto width = [](const Interval& i) { return i.high / i.low; };
  CHECK(width(r.comparisons[0].speed_ratio) < width(r.forecasts[0].tokens_s_gpu));
  CHECK(width(r.comparisons[0].speed_ratio) > 1);
}

TEST_CASE("runs that are not of equal work are compared with a warning") {
  const CompareResult r =
      compared({test::sixteen(),
                test::job_of("cluster: {name: grand-teton-h100-95gb, gpus: 8}\nmodel: llama3-8b\n"
                             "training: {sequence_length: 4096, micro_batch: 1, global_batch: 32}\n"
                             "software: torchtitan-2024-12\n")});
  REQUIRE(r.warnings.size() == 3);
  CHECK(contains(r.warnings[0], "A and B differ in sequence length (8192 and 4096)"));
  CHECK(contains(r.warnings[1], "A and B differ in global batch (64 and 32 sequences)"));
  CHECK(contains(r.warnings[2], "A and B differ in GPUs (16 and 8)"));
}

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "report/report.hpp"
#include "tests/base/expect.hpp"
#include "tests/report/explained.hpp"

using namespace forerun;
using test::contains;

namespace {

double gib(double bytes) {
  return bytes / kGiB;
}

}  // namespace

TEST_CASE("a run that does not fit says how much is missing, where and what was live") {
  // 8 billion parameters with 16 bytes each on 2 GPUs: 64 of 95 GB a GPU before any activation.
  const Forecast f = test::explained(
      test::job_of("cluster: {name: grand-teton-h100-95gb, gpus: 2}\n"
                   "model: llama3-8b\n"
                   "training: {sequence_length: 8192, micro_batch: 2, global_batch: 4}\n"
                   "software: torchtitan-2024-12\n"));
  REQUIRE(!f.metrics.fits);
  const std::string text = forecast_text(f);
  const double capacity = gib(f.job.scenario.cluster.gpu.memory.value.value());
  const double device = gib(f.metrics.memory.device);
  CHECK(contains(
      text, fmt::format("DOES NOT FIT: {:.1f} GiB short of {:.1f}", device - capacity, capacity)));
  const auto largest = std::max_element(f.live_at_peak.begin(), f.live_at_peak.end());
  const auto component = static_cast<MemoryComponent>(largest - f.live_at_peak.begin());
  CHECK(contains(text, fmt::format("largest at the peak of rank 0: {}, {:.1f} GiB",
                                   to_text(component), gib(static_cast<double>(*largest)))));
  REQUIRE(!f.peak_where.empty());
  CHECK(contains(text, f.peak_where));
  double shown = 0;  // each live component has a line
  for (std::size_t c = 0; c < kMemoryComponents; ++c) {
    const double live = gib(static_cast<double>(f.live_at_peak[c]));
    if (live < 0.005) continue;
    CHECK(contains(text, fmt::format("    {:<14}{:>9.2f} GiB\n",
                                     to_text(static_cast<MemoryComponent>(c)), live)));
    shown += live;
  }
  CHECK(shown == doctest::Approx(gib(f.metrics.memory.allocated)).epsilon(1e-3));
}

TEST_CASE("a run that fits says so with its probability") {
  const Forecast f = test::explained(test::job_of(test::kEight + "execution: {compile: true}\n"));
  REQUIRE(f.metrics.fits);
  const std::string text = forecast_text(f);
  CHECK(!contains(text, "DOES NOT FIT"));
  CHECK(contains(text, fmt::format("  fits: {:.1f} of", gib(f.metrics.memory.device))));
  CHECK(contains(text, fmt::format("(probability {:.0f}%)", 100 * f.p_fits)));
}

TEST_CASE("the text names every assumption and warning and what it rests on") {
  for (const std::string& yaml : test::runs()) {
    const Forecast f = test::explained(test::job_of(yaml));
    const std::string text = forecast_text(f);
    for (const Assumption& a : f.assumptions)
      CHECK(contains(text, a.key + " = " + a.value + " (" + a.why + ")"));
    for (const std::string& warning : f.warnings)
      CHECK(contains(text, "warning: " + warning));
    CHECK(contains(text, f.profile_id));
    CHECK(contains(text, f.job.scenario.software.name + " (" + f.job.scenario.software.date));
    CHECK(contains(text, "engine analytic"));
  }
}

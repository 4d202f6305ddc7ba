// Damaged sweep files.

#include "study/sweep.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "base/yaml.hpp"
#include "tests/fuzz/mutator.hpp"

namespace forerun::test {
namespace {

const std::string kSweep = R"(run:
  cluster: {name: grand-teton-h100-95gb, gpus: 64}
  model: llama3-8b
  training: {sequence_length: 8192, micro_batch: 1, global_batch: 64}
  software: torchtitan-2024-12
space:
  parallelism.tp: [1, 2, 4, 8]
  parallelism.pp: [1, 2]
  training.micro_batch: [1, 2]
  execution.recompute: [none, selective-op, full]
  parallelism.stage_layers: [[16, 16], [15, 17]]
)";

SweepSpace read(const std::string& text) {
  SweepSpace space = read_sweep(parse_yaml(checked_utf8(text, "sweep.yaml"), "sweep.yaml"));
  CHECK(space.points() >= 1);
  return space;
}

}  // namespace

TEST_CASE("damaged sweep files are read or refused") {
  // A run may be the name of a file, and "-" is standard input: nothing comes from there.
  REQUIRE(std::freopen("/dev/null", "r", stdin) != nullptr);
  CHECK(read(kSweep).points() == 4 * 2 * 2 * 3 * 2);
  Mutator mutated(21);
  Outcomes outcomes;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = mutated(kSweep);
    outcomes.expect_known(text, [&] { read(text); });
  }
  CHECK(outcomes.values > 300);
  CHECK(outcomes.refused > 300);
}

TEST_CASE("the points of damaged sweep files are counted by reason or the file is refused") {
  const StudyContext context{DataPath()};
  Mutator mutated(22);
  Outcomes outcomes;
  for (int i = 0; i < 500; ++i) {
    const std::string text = mutated(kSweep);
    outcomes.expect_known(text, [&] {
      SweepRequest request;
      request.space = read(text);
      request.progress = [](std::int64_t done) { return done < 64; };
      const SweepResult result = sweep(request, context);
      std::int64_t counted = static_cast<std::int64_t>(result.points_forecast);
      for (const auto& [reason, points] : result.rejected) {
        if (reason != "does not fit") counted += points;
      }
      CHECK(result.points_valid == result.points_forecast);
      CHECK((result.interrupted || counted == result.points_total));
    });
  }
  CHECK(outcomes.values > 10);
}

}  // namespace forerun::test

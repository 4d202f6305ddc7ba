// Published runs of many software stacks and GPUs (calibration/runs/others.csv) and of nanotron's
// sweep (nanotron.csv): how many are answered, and the error by stack, against the last accepted
// figures. A change for the worse is accepted by editing them in the same commit, with the reason.

#include "tests/accuracy/published.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

using namespace forerun;

namespace {

constexpr double kSlack = 0.004;

struct Table {
  CsvTable runs;
  std::vector<ValidatedRow> rows;
  Score score;
};

Table validated(const char* file) {
  const CsvTable runs = test::published(file);
  const auto rows = test::answered(runs);
  return {runs, rows, score(runs, rows, nullptr)};
}

const Table& others() {
  static const Table table = validated("others.csv");
  return table;
}
const Table& sweep() {
  static const Table table = validated("nanotron.csv");
  return table;
}

/// Median errors of speed.
const std::map<std::string, double> kAccepted{
    {"composer-2023-10", 0.0321},    {"megatron-2022-05", 0.0653},
    {"megatron-2025-03", 0.0733},    {"megatron-deepspeed-2022-03", 0.2440},
    {"nemo-2024-03", 0.1007},        {"nemo-2025-06", 0.1180},
    {"torch-fsdp1-2023-06", 0.1071}, {"torch-fsdp2-2025-03", 0.1879},
    {"torchtitan-2024-12", 0.0750},
};

}  // namespace

TEST_CASE("nine in ten published runs of other stacks are answered, and every one says why not") {
  CHECK(others().score.statuses.at("ok") >= 831);
  for (const ValidatedRow& row : others().rows) {
    const bool told = row.status == "ok" || row.status.starts_with("unsupported: ") ||
                      row.status.starts_with("invalid: ");
    CHECK_MESSAGE(told, row.id);
  }
}

TEST_CASE("the error of no stack has become worse unnoticed") {
  for (const auto& [stack, accepted] : kAccepted) {
    CAPTURE(stack);
    CHECK(others().score.speed_by_software.at(stack).median <= accepted + kSlack);
  }
  CHECK(others().score.speed.median <= 0.0901 + kSlack);
}

TEST_CASE("intervals cover about nine in ten of the runs that their spreads come from") {
  CHECK(others().score.speed.covered > 0.85);
  CHECK(sweep().score.speed.covered > 0.85);
  CHECK(sweep().score.memory.covered > 0.85);
}

TEST_CASE("every healthy run of nanotron's sweep is answered, and its memory is near") {
  CHECK(sweep().score.statuses.at("ok") == 692);
  CHECK(sweep().score.memory.median <= 0.1332 + kSlack);
}

// A sweep against each of its points alone.

#include "study/sweep.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/base/expect.hpp"
#include "tests/study/runs.hpp"
#include "workloads/resolve.hpp"
#include "workloads/rules.hpp"

using namespace forerun;
using test::contains;

namespace {

// 2 x 3 x 4 x 2 x 2 points: of tp 3 no degree is left over, micro_batch 3 divides no batch, nvfp4
// is not modelled, and with micro_batch 4 and no recompute nothing fits.
const std::string kSpace =
    "run: {cluster: {name: grand-teton-h100-95gb, gpus: 16}, model: llama3-8b, "
    "training: {sequence_length: 8192, micro_batch: 1, global_batch: 64}, "
    "software: torchtitan-2024-12}\n"
    "space:\n"
    "  training.precision: [bf16, nvfp4]\n"
    "  parallelism.tp: [1, 2, 3]\n"
    "  training.micro_batch: [1, 2, 3, 4]\n"
    "  execution.recompute: [none, full]\n"
    "  execution.compile: [true, false]\n";

SweepSpace space(const std::string& text = kSpace) {
  return read_sweep(parse_yaml(text, "sweep.yaml"));
}

SweepResult swept(int top = 1000, std::function<bool(std::int64_t)> progress = {}) {
  SweepRequest request;
  request.space = space();
  request.top = top;
  request.progress = std::move(progress);
  return sweep(request, test::context());
}

const SweepResult& all() {
  static const SweepResult result = swept();
  return result;
}

struct Alone {
  std::map<std::string, std::int64_t> counts;
  std::vector<Metrics> fitting;
};

/// Every point as a run of its own.
const Alone& alone() {
  static const Alone result = [] {
    Alone out;
    const SweepSpace s = space();
    for (std::int64_t n = 0; n < s.points(); ++n) {
      Node run = s.run;
      std::int64_t rest = n;
      for (std::size_t i = s.axes.size(); i-- > 0;) {
        const auto values = static_cast<std::int64_t>(s.axes[i].values.size());
        const Node& value = s.axes[i].values[static_cast<std::size_t>(rest % values)];
        set_dotted(run, s.axes[i].key, value);
        rest /= values;
      }
      try {
        const Metrics m = test::forecast_of(resolve(read_run(run), test::source_data())).metrics;
        ++out.counts[m.fits ? "fits" : "does not fit"];
        if (m.fits) out.fitting.push_back(m);
      } catch (const Unsupported&) {
        ++out.counts["unsupported"];
      } catch (const InputError&) {
        ++out.counts["invalid"];
      }
    }
    return out;
  }();
  return result;
}

std::int64_t rejected(const SweepResult& r, const std::string& begin) {
  std::int64_t n = 0;
  for (const auto& [reason, count] : r.rejected)
    n += reason.starts_with(begin) ? count : 0;
  return n;
}

using Corner = std::pair<double, double>;  // memory, speed

Corner corner(const Metrics& m) {
  return {m.memory.reserved, m.tokens_per_second_gpu};
}

}  // namespace

TEST_CASE("each point is counted once, under what it is alone") {
  const std::map<std::string, std::int64_t>& counts = alone().counts;
  CHECK(all().points_total == 2 * 3 * 4 * 2 * 2);
  for (const char* kind : {"invalid", "unsupported", "does not fit", "fits"})
    REQUIRE(counts.count(kind) == 1);  // the space has some of each
  CHECK(rejected(all(), "invalid") == counts.at("invalid"));
  CHECK(rejected(all(), "unsupported") == counts.at("unsupported"));
  CHECK(rejected(all(), "does not fit") == counts.at("does not fit"));
  CHECK(static_cast<std::int64_t>(all().top.size()) == counts.at("fits"));
  CHECK(all().points_valid == counts.at("fits") + counts.at("does not fit"));
  CHECK(all().points_forecast + all().points_pruned == all().points_valid);
  CHECK(!all().interrupted);
}

TEST_CASE("reasons are named") {
  CHECK(all().rejected.count("unsupported: precision nvfp4 in torchtitan-2024-12") == 1);
  CHECK(rejected(all(), "invalid: ") == rejected(all(), "invalid"));
  CHECK(all().rejected.count("invalid: parallelism.dp_shard") == 1);  // 16 GPUs over tp 3
}

TEST_CASE(
    "the best are sorted, the fewer are the first of the more, and each is its own forecast") {
  const SweepResult few = swept(3);
  REQUIRE(few.top.size() == 3);
  for (std::size_t i = 0; i < all().top.size(); ++i) {
    const SweepPoint& p = all().top[i];
    if (i > 0) {
      CHECK(p.metrics.tokens_per_second_gpu <= all().top[i - 1].metrics.tokens_per_second_gpu);
    }
    if (i < 3) CHECK(few.top[i].values == p.values);
    CHECK(test::forecast_of(p.job).metrics.step_seconds == p.metrics.step_seconds);
  }
  REQUIRE(few.best.has_value());
  CHECK(few.best->metrics.step_seconds == few.top[0].metrics.step_seconds);
  CHECK(few.pareto.size() == all().pareto.size());  // of all that fit, not of the listed
}

TEST_CASE("the Pareto set is undominated and complete") {
  std::set<Corner> expected;  // by brute force over the points alone
  for (const Metrics& m : alone().fitting) {
    const bool dominated =
        std::any_of(alone().fitting.begin(), alone().fitting.end(), [&](const Metrics& other) {
          const auto [memory, speed] = corner(m);
          const auto [less, more] = corner(other);
          return less <= memory && more >= speed && (less < memory || more > speed);
        });
    if (!dominated) expected.insert(corner(m));
  }
  std::set<Corner> found;
  for (const SweepPoint& p : all().pareto)
    found.insert(corner(p.metrics));
  CHECK(found == expected);
  CHECK(found.size() == all().pareto.size());
  CHECK(found.size() >= 2);
  CHECK(std::is_sorted(all().pareto.begin(), all().pareto.end(),
                       [](const SweepPoint& a, const SweepPoint& b) {
                         return a.metrics.memory.reserved < b.metrics.memory.reserved;
                       }));
}

TEST_CASE("an interrupted sweep keeps what it has done") {
  std::int64_t seen = -1;
  const SweepResult r = swept(1000, [&](std::int64_t done) {
    seen = done;
    return done == 0;
  });
  REQUIRE(seen > 0);
  REQUIRE(seen < r.points_total);
  CHECK(r.interrupted);
  CHECK(r.points_valid + rejected(r, "invalid") + rejected(r, "unsupported") == seen);
  CHECK(static_cast<std::int64_t>(r.top.size()) == r.points_valid - rejected(r, "does not fit"));
  REQUIRE(!r.top.empty());
  CHECK(r.best.has_value());
  for (const SweepPoint& p : r.top) {
    CHECK(std::any_of(all().top.begin(), all().top.end(),
                      [&](const SweepPoint& whole) { return whole.values == p.values; }));
  }
}

TEST_CASE("a knob of the scenario is swept as one of the plan is") {
  SweepRequest request;
  request.space = space(
      "run: {cluster: {name: grand-teton-h100-95gb, gpus: 16}, model: llama3-8b, "
      "training: {sequence_length: 8192, micro_batch: 1, global_batch: 64}, "
      "execution: {compile: true, recompute: full}, software: torchtitan-2024-12}\n"
      "space: {cluster.gpus: [16, 32], cluster.name: [grand-teton-h100-95gb, dgx-h100]}\n");
  const SweepResult r = sweep(request, test::context());
  CHECK(r.points_valid == 4);
  REQUIRE(r.top.size() >= 2);
  for (const SweepPoint& p : r.top) {
    CHECK(std::to_string(p.job.plan.gpus()) == p.values[0]);
    CHECK(p.job.scenario.cluster.name == p.values[1]);
    CHECK(test::forecast_of(p.job).metrics.step_seconds == p.metrics.step_seconds);
  }
}

TEST_CASE("a sweep file that is none is refused at its place") {
  const auto refusal = [](const std::string& text) {
    return test::input_error([&] {
      SweepRequest request;
      request.space = space(text);
      sweep(request, test::context());
    });
  };
  const std::string run = kSpace.substr(0, kSpace.find("space:"));
  CHECK(contains(refusal(run), "space"));
  CHECK(contains(refusal(run + "space: [1, 2]\n"), "a mapping of dotted keys to lists"));
  CHECK(contains(refusal(run + "space:\n  parallelism.tp: 2\n"),
                 "sweep.yaml:3:3: space.parallelism.tp: found"));
  CHECK(contains(refusal(run + "space:\n  parallelism.tp: []\n"), "a list of values is wanted"));
  CHECK(contains(refusal(run + "space:\n  parallelism.tq: [2]\n"), "tq"));
  CHECK(contains(refusal(run + "space:\n  parallelism.tp: [1, two]\n"), "two"));
  CHECK(contains(refusal(run + "space:\n  parallelism.tp: [1]\nspeed: 1\n"), "speed"));
}

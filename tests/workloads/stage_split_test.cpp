#include "workloads/stage_split.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/workloads/runs.hpp"

namespace forerun {
namespace {

std::vector<int> split(std::int64_t layers, int pp, int virtual_stages = 1) {
  Scenario scenario;
  scenario.model.layers = layers;
  Plan plan;
  plan.pp = pp;
  plan.virtual_stages = virtual_stages;
  return layers_per_stage(scenario, plan);
}

std::vector<int> split_by(StageSplit rule, const ModelSpec& model, int stages) {
  Scenario scenario;
  scenario.model = model;
  scenario.software.stage_split = rule;
  Plan plan;
  plan.pp = stages;
  return layers_per_stage(scenario, plan);
}

/// The split points of torchtitan's generate_split_points (torchtitan/parallelisms/
/// pipelining_utils.py, December 2024), as layers of each stage.
std::vector<int> torchtitan(int layers, int stages) {
  const int interval = layers / stages;
  int extra = layers % stages, current = 0, before = 0;
  std::vector<int> out;
  for (int stage = 1; stage < stages; ++stage) {
    if (stage == 1) {
      current += interval;
    } else if (extra > 0) {
      current += interval + 1;
      --extra;
    } else {
      current += interval;
    }
    out.push_back(current - before);
    before = current;
  }
  out.push_back(layers - before);
  return out;
}

/// `first`, then `count` stages of `middle`, then `last`.
std::vector<int> shape(int first, int count, int middle, int last) {
  std::vector<int> out{first};
  out.insert(out.end(), static_cast<std::size_t>(count), middle);
  out.push_back(last);
  return out;
}

}  // namespace

TEST_CASE("nanotron's first stages hold what its published runs show") {
  // Read off the allocated memory of rank 0 in its sweep.
  ModelSpec small, large;
  small.layers = 16, small.hidden = 2048, small.ffn_hidden = 8192;
  small.heads = 32, small.head_dim = 64, small.vocab = 131072;
  large.layers = 32, large.hidden = 4096, large.ffn_hidden = 14336;
  large.heads = 32, large.head_dim = 128, large.vocab = 131072;
  const auto first = [](const ModelSpec& m, int pp) {
    const std::vector<int> layers = split_by(StageSplit::kNanotron, m, pp);
    CHECK(std::accumulate(layers.begin(), layers.end(), 0) == m.layers);
    CHECK(*std::min_element(layers.begin(), layers.end()) >= 0);
    return layers.front();
  };
  CHECK(first(small, 2) == 10);
  CHECK(first(small, 4) == 5);
  CHECK(first(large, 2) == 18);
  CHECK(first(large, 4) == 9);
  CHECK(first(large, 8) == 5);
}

TEST_CASE("embedding and loss count as a layer each where that makes stages even") {
  ModelSpec model;
  model.layers = 126;
  std::vector<int> wanted(64, 2);
  wanted.front() = wanted.back() = 1;
  CHECK(split_by(StageSplit::kEnds, model, 64) == wanted);
  CHECK(split_by(StageSplit::kEnds, model, 7) == std::vector<int>(7, 18));
}

TEST_CASE("the 126 layers of Llama-3.1-405B are shorter at both ends") {
  CHECK(split(126, 8) == shape(15, 6, 16, 15));   // 2 x 15 + 6 x 16
  CHECK(split(126, 16) == shape(7, 14, 8, 7));    // 2 x 7 + 14 x 8
  CHECK(split(126, 32) == shape(3, 30, 4, 3));    // 2 x 3 + 30 x 4
  CHECK(split(126, 8, 2) == shape(7, 14, 8, 7));  // stages are pp x virtual_stages
}

TEST_CASE("the split is torchtitan's for any number of layers and stages") {
  for (int layers = 1; layers <= 130; ++layers) {
    bool same = true;
    for (int stages = 1; stages <= layers; ++stages) {
      same &= split(layers, stages) == torchtitan(layers, stages);
    }
    CHECK_MESSAGE(same, layers);
  }
}

TEST_CASE("every layer has a stage and no two stages differ by more than one layer") {
  for (int stages = 1; stages <= 126; ++stages) {
    const std::vector<int> layers = split(126, stages);
    CHECK(static_cast<int>(layers.size()) == stages);
    CHECK(std::accumulate(layers.begin(), layers.end(), 0) == 126);
    const auto [least, most] = std::minmax_element(layers.begin(), layers.end());
    CHECK(*most - *least <= 1);
  }
}

TEST_CASE("a list of the run's own goes before the rule") {
  const Job job = test::resolved({"parallelism.pp=4", "parallelism.stage_layers=[7, 9, 9, 7]"});
  CHECK(layers_per_stage(job.scenario, job.plan) == std::vector<int>{7, 9, 9, 7});
  const Job silent = test::resolved({"parallelism.pp=3", "cluster.gpus=24"});
  CHECK(layers_per_stage(silent.scenario, silent.plan) == std::vector<int>{10, 11, 11});
}

}  // namespace forerun

#include "workloads/stage_split.hpp"

namespace forerun {
namespace {

/// torchtitan (models/llama, generate_split_points, December 2024): embedding and output weigh
/// nothing; layers left over go to the middle stages in order, then to the last. The most even
/// split with shorter stages first and last is the same.
std::vector<int> middle_first(int layers, int stages) {
  std::vector<int> split(static_cast<std::size_t>(stages), layers / stages);
  int left = layers % stages;
  for (int stage = 1; stage + 1 < stages && left > 0; ++stage, --left) {
    ++split[static_cast<std::size_t>(stage)];
  }
  split.back() += left;
  return split;
}

/// Megatron-Core with account_for_embedding and account_for_loss, as NeMo's recipes set them where
/// layers do not divide: embedding and loss count as a layer each.
std::vector<int> ends_count(int layers, int stages) {
  if (layers % stages == 0 || (layers + 2) % stages != 0) return middle_first(layers, stages);
  std::vector<int> split(static_cast<std::size_t>(stages), (layers + 2) / stages);
  --split.front();
  --split.back();
  return split;
}

/// nanotron (models/base.py, build_model): blocks are put on a stage until its cumulative cost
/// reaches its share; a layer costs 4 heads x head_dim x hidden + 3 ffn x hidden, the output
/// projection vocabulary x hidden. Norm, projection and loss stay together on the last stage.
std::vector<int> by_cost(const ModelSpec& m, int stages) {
  const auto d = [](std::int64_t n) { return static_cast<double>(n); };
  const double layer = 4 * d(m.heads * m.head_dim) + 3 * d(m.ffn_hidden), head = d(m.vocab);
  const double total = d(m.layers) * layer + head;
  std::vector<int> split(static_cast<std::size_t>(stages), 0);
  double cost = 0;
  int stage = 0;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    // Every later stage wants a layer.
    const std::int64_t left = m.layers - i, later = stages - 1 - stage;
    const bool full = cost >= total * (stage + 1) / stages;
    if (stage + 1 < stages && split[static_cast<std::size_t>(stage)] > 0 &&
        (full || left <= later)) {
      ++stage;
    }
    ++split[static_cast<std::size_t>(stage)];
    cost += layer;
  }
  return split;
}

}  // namespace

std::vector<int> layers_per_stage(const Scenario& scenario, const Plan& plan) {
  const StageLayers& own = plan.stage_layers;
  if (own.count > 0) return {own.layers.begin(), own.layers.begin() + own.count};
  if (scenario.software.stage_split == StageSplit::kNanotron) {
    return by_cost(scenario.model, plan.stages());
  }
  if (scenario.software.stage_split == StageSplit::kEnds) {
    return ends_count(static_cast<int>(scenario.model.layers), plan.stages());
  }
  // kEven and kTorchtitan agree; under kMegatron a rule has refused what does not divide.
  return middle_first(static_cast<int>(scenario.model.layers), plan.stages());
}

}  // namespace forerun

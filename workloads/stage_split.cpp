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

}  // namespace

std::vector<int> layers_per_stage(const Scenario& scenario, const Plan& plan) {
  const StageLayers& own = plan.stage_layers;
  if (own.count > 0) return {own.layers.begin(), own.layers.begin() + own.count};
  // kEven and kTorchtitan agree; under kMegatron a rule has refused what does not divide.
  return middle_first(static_cast<int>(scenario.model.layers), plan.stages());
}

}  // namespace forerun

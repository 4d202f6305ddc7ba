#include "workloads/expert_mesh.hpp"

#include <numeric>

namespace forerun {

ExpertGroups expert_groups(const Plan& plan) {
  const Mesh mesh = plan.mesh();
  RankGroup pool = mesh.group({Axis::kDpShard, Axis::kCp});
  const auto take = [&](Axis axis) { pool.add({mesh.degree(axis), mesh.stride(axis)}); };
  if (!experts_cut(plan)) take(Axis::kTp);
  if (plan.zero_stage < 3) take(Axis::kDpReplicate);
  ExpertGroups out;
  std::int64_t left = plan.ep;
  for (int i = 0; i < pool.steps(); ++i) {
    const AxisStep step = pool.step(i);
    const std::int64_t taken = std::gcd(step.size, left);
    out.experts.add({taken, step.stride});
    out.copies.add({step.size / taken, step.stride * taken});
    left /= taken;
  }
  return out;
}

}  // namespace forerun

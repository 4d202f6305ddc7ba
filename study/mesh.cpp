#include "study/mesh.hpp"

#include <fmt/format.h>

#include "workloads/expert_mesh.hpp"
#include "workloads/rules.hpp"

namespace forerun {
namespace {

constexpr std::int64_t kMembersShown = 16;

MeshGroup group_of(std::string name, const Mesh& mesh, const RankGroup& ranks,
                   const ClusterSpec& cluster) {
  MeshGroup out;
  out.name = std::move(name);
  out.span = span_of(ranks, cluster);
  out.groups = mesh.size() / out.span.ranks;
  out.bandwidth = cluster.bandwidth_at(out.span.tier);
  out.members = ranks.members(0, kMembersShown);
  return out;
}

}  // namespace

MeshResult describe_mesh(const Job& job) {
  const Mesh mesh = job.plan.mesh();
  const ClusterSpec& cluster = job.scenario.cluster;
  MeshResult out;
  out.gpus = mesh.size();
  for (const Axis axis : mesh.order()) {
    out.order.push_back(fmt::format("{} {}", to_text(axis), mesh.degree(axis)));
    if (mesh.degree(axis) > 1) {
      out.groups.push_back(group_of(std::string(to_text(axis)), mesh, mesh.group({axis}), cluster));
    }
  }
  if (mesh.degree(Axis::kDpShard) > 1 && mesh.degree(Axis::kCp) > 1) {
    out.groups.push_back(group_of("dp_shard x cp (parameters are cut over both)", mesh,
                                  mesh.group({Axis::kDpShard, Axis::kCp}), cluster));
  }
  if (job.scenario.model.moe() && job.plan.ep > 1) {
    const ExpertGroups experts = expert_groups(job.plan);
    out.groups.push_back(group_of("ep", mesh, experts.experts, cluster));
    if (experts.copies.ranks() > 1) {
      out.groups.push_back(
          group_of("copies of experts (cut and reduced over them)", mesh, experts.copies, cluster));
    }
  }
  out.warnings = plan_warnings(job.scenario, job.plan);
  return out;
}

}  // namespace forerun

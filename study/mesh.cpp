#include "study/mesh.hpp"

#include <fmt/format.h>

#include "workloads/rules.hpp"

namespace forerun {
namespace {

constexpr std::int64_t kMembersShown = 16;

MeshGroup group_of(std::string name, const Mesh& mesh, std::initializer_list<Axis> axes,
                   const ClusterSpec& cluster) {
  const RankGroup ranks = mesh.group(axes);
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
      out.groups.push_back(group_of(std::string(to_text(axis)), mesh, {axis}, cluster));
    }
  }
  if (mesh.degree(Axis::kDpShard) > 1 && mesh.degree(Axis::kCp) > 1) {
    out.groups.push_back(group_of("dp_shard x cp (parameters are cut over both)", mesh,
                                  {Axis::kDpShard, Axis::kCp}, cluster));
  }
  out.warnings = plan_warnings(job.scenario, job.plan);
  return out;
}

}  // namespace forerun

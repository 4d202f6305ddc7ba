#include "workloads/expert_mesh.hpp"

#include <doctest/doctest.h>

using namespace forerun;

namespace {

Plan plan_of(int dp_replicate, int dp_shard, int cp, int tp, int ep, int etp = 1) {
  Plan plan;
  plan.dp_replicate = dp_replicate;
  plan.dp_shard = dp_shard;
  plan.cp = cp;
  plan.tp = tp;
  plan.ep = ep;
  plan.etp = etp;
  return plan;
}

using Ranks = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("experts take the innermost ranks, their copies the rest") {
  const ExpertGroups g = expert_groups(plan_of(1, 8, 1, 1, 4));
  CHECK(g.experts.members(0, 99) == Ranks{0, 1, 2, 3});
  CHECK(g.copies.members(0, 99) == Ranks{0, 4});
}

TEST_CASE("an expert that is whole on its rank spreads over tp too") {
  // dp_shard 4 x tp 2: rank = 2 dp + tp. Two experts' ranks are the tp pair, copies lie along dp.
  const ExpertGroups whole = expert_groups(plan_of(1, 4, 1, 2, 2));
  CHECK(whole.experts.members(0, 99) == Ranks{0, 1});
  CHECK(whole.copies.members(0, 99) == Ranks{0, 2, 4, 6});
  const ExpertGroups cut = expert_groups(plan_of(1, 4, 1, 2, 2, 2));
  CHECK(cut.experts.members(0, 99) == Ranks{0, 2});
  CHECK(cut.copies.members(0, 99) == Ranks{0, 4});
}

TEST_CASE("replicas belong to the pool where parameters are not sharded") {
  Plan plan = plan_of(8, 1, 1, 1, 4);
  plan.zero_stage = 1;
  CHECK(expert_groups(plan).experts.ranks() == 4);
  CHECK(expert_groups(plan).copies.members(0, 99) == Ranks{0, 4});
  plan = plan_of(2, 4, 1, 1, 4);
  CHECK(expert_groups(plan).copies.ranks() == 1);  // sharded: each replica has its own experts
}

TEST_CASE("without expert parallelism experts are cut as everything else is") {
  const ExpertGroups g = expert_groups(plan_of(1, 4, 2, 2, 1));
  CHECK(g.experts.ranks() == 1);
  CHECK(g.copies.ranks() == 8);
  CHECK(experts_cut(plan_of(1, 4, 2, 2, 1)));
  CHECK_FALSE(experts_cut(plan_of(1, 4, 2, 2, 4)));
  CHECK(experts_cut(plan_of(1, 4, 2, 2, 4, 2)));
}

TEST_CASE("groups of experts and copies together are the pool") {
  for (const int ep : {1, 2, 3, 4, 6, 12, 24}) {
    Plan plan = plan_of(1, 6, 2, 2, ep);
    plan.mesh_order = {Axis::kPp, Axis::kTp, Axis::kDpReplicate, Axis::kDpShard, Axis::kCp};
    const ExpertGroups g = expert_groups(plan);
    CHECK(g.experts.ranks() == ep);
    CHECK(g.experts.ranks() * g.copies.ranks() == (ep == 1 ? 12 : 24));
  }
}

// DTensor's algebra: what a redistribution on one mesh dimension costs
// (torch.distributed.tensor, _redistribute.py).

#include "model/placement.hpp"

#include <doctest/doctest.h>

using namespace forerun;

namespace {

constexpr Placement kR = Placement::replicate();
constexpr Placement kP = Placement::partial();
constexpr Placement kS0 = Placement::shard(0);
constexpr Placement kS1 = Placement::shard(1);

}  // namespace

TEST_CASE("each redistribution is the collective that DTensor runs") {
  CHECK(collective_of(kS1, kR) == CollectiveKind::kAllGather);
  CHECK(collective_of(kP, kS1) == CollectiveKind::kReduceScatter);
  CHECK(collective_of(kP, kR) == CollectiveKind::kAllReduce);
  CHECK(collective_of(kS0, kS1) == CollectiveKind::kAllToAll);
}

TEST_CASE("what every rank holds already is redistributed without communication") {
  CHECK(collective_of(kR, kS1) == CollectiveKind::kNone);  // a local slice
  CHECK(collective_of(kR, kP) == CollectiveKind::kNone);   // one rank keeps it, the others zero
  for (const Placement same : {kR, kP, kS0, kS1}) {
    CHECK(collective_of(same, same) == CollectiveKind::kNone);
  }
}

TEST_CASE("bytes are counted as nccl-tests count them") {
  // Of a tensor of 4096 bytes on 8 ranks: the whole for gathers and reductions, what one rank holds
  // (4096 / 8 = 512) for an all-to-all (nccl-tests, doc/PERFORMANCE.md).
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce}) {
    CHECK(collective_bytes(kind, 4096, 8) == 4096);
  }
  CHECK(collective_bytes(CollectiveKind::kAllToAll, 4096, 8) == 512);
  CHECK(collective_bytes(CollectiveKind::kNone, 4096, 8) == 0);
  CHECK(collective_bytes(CollectiveKind::kAllReduce, 4096, 1) == 0);
}

TEST_CASE("the gradient of a shard is that shard, of anything else it is whole") {
  CHECK(gradient_placement(kS0) == kS0);
  CHECK(gradient_placement(kS1) == kS1);
  CHECK(gradient_placement(kR) == kR);
  CHECK(gradient_placement(kP) == kR);
}

TEST_CASE("the gradient of a redistribution is its adjoint") {
  // Megatron's conjugate pairs (arXiv 1909.08053, f and g; arXiv 2205.05198, g and g-bar): forward
  // and backward of each. The gradient of a gathered copy that several ranks used arrives partial.
  struct Pair {
    Placement from, to, gradient;
    CollectiveKind forward, backward;
  };
  const Pair pairs[] = {
      {kP, kR, kR, CollectiveKind::kAllReduce, CollectiveKind::kNone},
      {kS1, kR, kP, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter},
      {kP, kS1, kS1, CollectiveKind::kReduceScatter, CollectiveKind::kAllGather},
  };
  for (const Pair& p : pairs) {
    CAPTURE(to_text(p.from));
    CHECK(collective_of(p.from, p.to) == p.forward);
    CHECK(collective_of(p.gradient, gradient_placement(p.from)) == p.backward);
  }
}

TEST_CASE("placements have the names that DTensor prints") {
  CHECK(to_text(kR) == "Replicate");
  CHECK(to_text(kS1) == "Shard(1)");
  CHECK(to_text(kP) == "Partial");
}

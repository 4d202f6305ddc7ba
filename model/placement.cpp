#include "model/placement.hpp"

namespace forerun {

std::string to_text(Placement placement) {
  switch (placement.kind) {
    case Placement::Kind::kReplicate:
      return "Replicate";
    case Placement::Kind::kShard:
      return "Shard(" + std::to_string(placement.dim) + ")";
    case Placement::Kind::kPartial:
      return "Partial";
  }
  return "";
}

CollectiveKind collective_of(Placement from, Placement to) {
  if (from == to || from.is_replicate()) return CollectiveKind::kNone;
  if (from.is_shard())
    return to.is_replicate() ? CollectiveKind::kAllGather : CollectiveKind::kAllToAll;
  return to.is_shard() ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
}

std::int64_t collective_bytes(CollectiveKind kind, std::int64_t whole, int ranks) {
  if (kind == CollectiveKind::kNone || ranks == 1) return 0;
  return kind == CollectiveKind::kAllToAll ? whole / ranks : whole;
}

}  // namespace forerun

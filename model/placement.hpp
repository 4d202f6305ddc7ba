#pragma once

// DTensor's algebra: how a tensor of global shape [batch, sequence, features] (or a parameter
// [out, in]) lies on the dimensions of the device mesh, and what it costs to change that.
//
//   Replicate   every rank of the mesh dimension holds all of it
//   Shard(d)    tensor dimension d is cut evenly over the ranks
//   Partial     every rank holds a summand of all of it
//
// Redistribution on one mesh dimension of n ranks (source: torch.distributed.tensor, redistribute):
//   Shard(d)  -> Replicate   all-gather of the whole tensor
//   Partial   -> Shard(d)    reduce-scatter of the whole tensor
//   Partial   -> Replicate   all-reduce
//   Shard(a)  -> Shard(b)    all-to-all of one shard
//   Replicate -> Shard(d)    a local slice, free of communication
//   Replicate -> Partial     local: one rank keeps the value, the others zero

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/enum_text.hpp"

namespace forerun {

struct Placement {
  enum class Kind : std::uint8_t { kReplicate, kShard, kPartial };
  Kind kind = Kind::kReplicate;
  std::int8_t dim = 0;  ///< of kShard

  static constexpr Placement replicate() { return {}; }
  static constexpr Placement shard(int dim) {
    return {Kind::kShard, static_cast<std::int8_t>(dim)};
  }
  static constexpr Placement partial() { return {Kind::kPartial, 0}; }

  [[nodiscard]] constexpr bool is_shard() const { return kind == Kind::kShard; }
  [[nodiscard]] constexpr bool is_shard(int d) const { return is_shard() && dim == d; }
  [[nodiscard]] constexpr bool is_partial() const { return kind == Kind::kPartial; }
  [[nodiscard]] constexpr bool is_replicate() const { return kind == Kind::kReplicate; }
  constexpr bool operator==(const Placement&) const = default;
};

/// "Replicate", "Shard(1)", "Partial".
std::string to_text(Placement placement);

enum class CollectiveKind : std::uint8_t {
  kNone,
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kSendRecv,
  kBroadcast
};
constexpr auto enum_texts(CollectiveKind) {
  return std::array<std::string_view, 7>{"none",     "allgather", "reducescatter", "allreduce",
                                         "alltoall", "sendrecv",  "broadcast"};
}
FR_CHECK_ENUM(CollectiveKind, CollectiveKind::kBroadcast);

/// The collective of a redistribution on one mesh dimension.
CollectiveKind collective_of(Placement from, Placement to);

/// Bytes as nccl-tests count them (all-gather, reduce-scatter and all-reduce: the whole tensor;
/// all-to-all: what one rank holds), for a tensor of `whole` bytes on n ranks.
std::int64_t collective_bytes(CollectiveKind kind, std::int64_t whole, int ranks);

/// The placement that the gradient of a tensor must have: a shard's is the same shard; the gradient
/// of a Partial value is Replicate (each summand's gradient is the sum's); of a Replicate value it
/// is Replicate, whatever partial sums have to be reduced first.
constexpr Placement gradient_placement(Placement forward) {
  return forward.is_shard() ? forward : Placement::replicate();
}

/// The mesh dimensions on which activations and parameters of a block are placed. (Data parallelism
/// cuts the batch outside the block; FSDP cuts parameters as units, model/sharding.)
/// On the expert dimension Shard(1) means rows cut by the rank that owns their tokens, Shard(0)
/// rows cut by the rank that holds their experts: tokens reach their experts by the all-to-all
/// between the two. It reuses ranks of the other dimensions, so it never cuts a tensor's local
/// shape.
enum class MeshDim : std::uint8_t { kTensor, kContext, kExpert };
inline constexpr std::size_t kMeshDims = 3;
constexpr auto enum_texts(MeshDim) {
  return std::array<std::string_view, kMeshDims>{"tp", "cp", "ep"};
}
FR_CHECK_ENUM(MeshDim, MeshDim::kExpert);

/// A placement on each mesh dimension.
struct Layout {
  std::array<Placement, kMeshDims> on{};
  [[nodiscard]] constexpr Placement& operator[](MeshDim d) {
    return on[static_cast<std::size_t>(d)];
  }
  [[nodiscard]] constexpr Placement operator[](MeshDim d) const {
    return on[static_cast<std::size_t>(d)];
  }
  constexpr bool operator==(const Layout&) const = default;
};

}  // namespace forerun

#pragma once

// The kernels of one pass of one block on one rank, before they cost anything: what each reads,
// writes and computes, which tensors it allocates and which are freed after it, and which earlier
// kernels it waits for. This is the lowest form that depends on shapes alone (not on hardware).

#include <array>
#include <boost/container/static_vector.hpp>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/enum_text.hpp"
#include "model/placement.hpp"

namespace forerun {

/// Where a moment of the step is charged (the keys of breakdown_s).
enum class Category : std::uint8_t {
  kGemm,
  kAttention,
  kPointwise,
  kCast,
  kOptimizer,
  kExposedTp,
  kExposedCp,
  kExposedEp,
  kExposedPp,
  kExposedDp,
  kBubble,
  kHost,
  kRecompute,
  kInterference,
  kOther
};
inline constexpr std::size_t kCategories = 15;
constexpr auto enum_texts(Category) {
  return std::array<std::string_view, kCategories>{
      "gemm",       "attention",  "pointwise",  "cast",         "optimizer",
      "exposed_tp", "exposed_cp", "exposed_ep", "exposed_pp",   "exposed_dp",
      "bubble",     "host",       "recompute",  "interference", "other"};
}
FR_CHECK_ENUM(Category, Category::kOther);

/// What kind of code runs, which decides its cost formula and how collectives slow it.
enum class KernelFamily : std::uint8_t {
  kGemm,
  kAttentionForward,
  kAttentionBackward,
  kEager,        ///< one elementwise operator, contiguous
  kEagerReduce,  ///< one reduction operator
  kFused,        ///< compiled or hand-fused pointwise and normalisation kernels
  kStrided,      ///< copies between layouts, complex arithmetic, gathers and scatters
  kOptimizer,
  kCollective,
};
inline constexpr std::size_t kKernelFamilies = 9;
constexpr auto enum_texts(KernelFamily) {
  return std::array<std::string_view, kKernelFamilies>{
      "gemm",  "attention", "attention-backward", "eager",     "eager-reduction",
      "fused", "strided",   "optimizer",          "collective"};
}
FR_CHECK_ENUM(KernelFamily, KernelFamily::kCollective);

enum class GemmLayout : std::uint8_t { kForward, kDgrad, kWgrad };
constexpr auto enum_texts(GemmLayout) {
  return std::array<std::string_view, 3>{"fwd", "dgrad", "wgrad"};
}
FR_CHECK_ENUM(GemmLayout, GemmLayout::kWgrad);

/// C[m, n] = A[m, k] . B[k, n]; of `groups` such products in one kernel.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::kBf16;
  GemmLayout layout = GemmLayout::kForward;
  std::int64_t groups = 1;
};

/// Scaled dot-product attention of one rank.
struct AttentionShape {
  std::int64_t scores = 0;  ///< query-key pairs of an unfused kernel, masked ones too
  std::int64_t batch = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t q_length = 0, kv_length = 0;
  double pairs = 0;  ///< query-key pairs that are computed, over batch and heads
};

/// A collective inside a block.
struct CommShape {
  CollectiveKind collective = CollectiveKind::kNone;
  MeshDim dim = MeshDim::kTensor;
  std::int64_t bytes = 0;  ///< as nccl-tests count them
};

/// What a live byte is for.
enum class MemoryComponent : std::uint8_t {
  kParameters,   ///< sharded, as the optimizer holds them
  kOptimizer,    ///< moments
  kGradients,    ///< sharded or accumulated
  kGathered,     ///< parameters gathered for compute, and buffers of the gathering
  kUnreduced,    ///< gradients of a unit before they are reduced, and buffers of the reduction
  kActivations,  ///< saved from forward to backward
  kTemporaries,  ///< live inside a block
  kLoss,         ///< logits and what the loss makes of them
  kPipeline,     ///< messages between stages
  kOther,        ///< workspaces
};
inline constexpr std::size_t kMemoryComponents = 10;
constexpr auto enum_texts(MemoryComponent) {
  return std::array<std::string_view, kMemoryComponents>{
      "parameters",  "optimizer",   "gradients", "gathered", "unreduced",
      "activations", "temporaries", "loss",      "pipeline", "other"};
}
FR_CHECK_ENUM(MemoryComponent, MemoryComponent::kOther);

/// Bytes of one component; tensors are rounded to the allocator's 512 bytes one by one.
struct MemoryDelta {
  MemoryComponent component = MemoryComponent::kTemporaries;
  std::int64_t bytes = 0;
};

/// Tensors that become live before a kernel or dead after it, by component.
struct MemoryChange {
  boost::container::static_vector<MemoryDelta, 4> allocated;
  boost::container::static_vector<MemoryDelta, 4> freed;
  /// Change of what the allocator's pool holds (model/arena.hpp) as tensors are made and freed.
  std::int64_t held_allocating = 0;
  std::int64_t held_freeing = 0;

  void allocate(MemoryComponent component, std::int64_t bytes) { add(allocated, component, bytes); }
  void free(MemoryComponent component, std::int64_t bytes) { add(freed, component, bytes); }

 private:
  static void add(boost::container::static_vector<MemoryDelta, 4>& to, MemoryComponent component,
                  std::int64_t bytes) {
    for (MemoryDelta& delta : to) {
      if (delta.component != component) continue;
      delta.bytes += bytes;
      return;
    }
    to.push_back({component, bytes});
  }
};

struct Kernel {
  std::string_view name;
  KernelFamily family = KernelFamily::kEager;
  Category category = Category::kPointwise;
  bool recompute = false;
  int repeat = 1;            ///< identical launches, one after the other
  int overlap_chunks = 1;    ///< async TP: cut into this many pieces beside a collective's pieces
  bool host_waits = false;   ///< the host waits for its result before it goes on
  int overlapped_with = -1;  ///< of a collective in pieces: the kernel that hides it
  std::int64_t bytes = 0;    ///< read and written
  GemmShape gemm;
  AttentionShape attention;
  CommShape comm;
  MemoryChange memory;
  /// Kernels of this pass on another stream whose end this one waits for.
  boost::container::static_vector<std::int16_t, 6> after;

  [[nodiscard]] bool is_collective() const { return family == KernelFamily::kCollective; }
};

/// Both passes of a block and what they leave behind.
struct BlockKernels {
  std::vector<Kernel> forward;
  std::vector<Kernel> backward;
  std::int64_t output_bytes = 0;     ///< hidden states handed on, also sent between stages
  std::int64_t logit_bytes = 0;      ///< of the head: logits in the compute dtype
  std::int64_t parameter_count = 0;  ///< of this rank, cut by tensor parallelism
  std::int64_t gathered_bytes = 0;   ///< parameters as gathered for compute (bf16 or fp8)
  std::int64_t gradient_bytes = 0;   ///< their gradients as the backward pass leaves them
  int parameter_tensors = 0;
  /// Of those, what belongs to experts, which other ranks hold than hold the rest.
  std::int64_t expert_count = 0, expert_gathered_bytes = 0;
  bool compiled = false;
};

}  // namespace forerun

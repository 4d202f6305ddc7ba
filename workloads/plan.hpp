#pragma once

// What a run does, as plain numbers and enums: the training recipe, the parallelism and how it is
// executed. A Plan is a value without strings; a sweep varies plans over one scenario.

#include <array>
#include <cstdint>
#include <string_view>

#include "base/dtype.hpp"
#include "base/enum_text.hpp"
#include "topology/mesh.hpp"

namespace forerun {

enum class Precision : std::uint8_t {
  kBf16,
  kFp16,
  kFp32,
  kFp8Tensorwise,
  kFp8Rowwise,
  kFp8Blockwise,
  kFp8Delayed,
  kMxfp8,
  kNvfp4
};
constexpr auto enum_texts(Precision) {
  return std::array<std::string_view, 9>{"bf16",           "fp16",        "fp32",
                                         "fp8-tensorwise", "fp8-rowwise", "fp8-blockwise",
                                         "fp8-delayed",    "mxfp8",       "nvfp4"};
}
FR_CHECK_ENUM(Precision, Precision::kNvfp4);

enum class OptimizerKind : std::uint8_t { kAdamW, kAdam, kSgd, kAdafactor, kMuon, kAdamW8bit };
constexpr auto enum_texts(OptimizerKind) {
  return std::array<std::string_view, 6>{"adamw", "adam", "sgd", "adafactor", "muon", "adamw-8bit"};
}
FR_CHECK_ENUM(OptimizerKind, OptimizerKind::kAdamW8bit);

enum class Recompute : std::uint8_t { kNone, kSelectiveAttention, kSelectiveOp, kFull };
constexpr auto enum_texts(Recompute) {
  return std::array<std::string_view, 4>{"none", "selective-attention", "selective-op", "full"};
}
FR_CHECK_ENUM(Recompute, Recompute::kFull);

enum class ScheduleKind : std::uint8_t {
  kGpipe,
  k1F1B,
  kInterleaved1F1B,
  kZbH1,
  kZbv,
  kDualPipe,
  kDualPipeV,
  kLoopedBfs
};
constexpr auto enum_texts(ScheduleKind) {
  return std::array<std::string_view, 8>{"gpipe", "1f1b",     "interleaved-1f1b", "zb-h1",
                                         "zbv",   "dualpipe", "dualpipev",        "looped-bfs"};
}
FR_CHECK_ENUM(ScheduleKind, ScheduleKind::kLoopedBfs);

enum class CpKind : std::uint8_t { kAllGather, kRing, kUlysses };
constexpr auto enum_texts(CpKind) {
  return std::array<std::string_view, 3>{"allgather", "ring", "ulysses"};
}
FR_CHECK_ENUM(CpKind, CpKind::kUlysses);

/// FSDP: when parameters gathered for forward are freed again.
enum class Reshard : std::uint8_t {
  kDefault,  ///< after each block but the last; never with a pipeline
  kAlways,
  kNever
};
constexpr auto enum_texts(Reshard) {
  return std::array<std::string_view, 3>{"default", "always", "never"};
}
FR_CHECK_ENUM(Reshard, Reshard::kNever);

enum class AttentionKernel : std::uint8_t { kFlash2, kFlash3, kCudnn, kUnfused, kFlash1 };
constexpr auto enum_texts(AttentionKernel) {
  return std::array<std::string_view, 5>{"flash2", "flash3", "cudnn", "unfused", "flash1"};
}
FR_CHECK_ENUM(AttentionKernel, AttentionKernel::kFlash1);

enum class LossKind : std::uint8_t { kPlain, kParallel, kChunked, kFused };
constexpr auto enum_texts(LossKind) {
  return std::array<std::string_view, 4>{"plain", "parallel", "chunked", "fused"};
}
FR_CHECK_ENUM(LossKind, LossKind::kFused);

enum class Offload : std::uint8_t { kNone, kOptimizer, kParams, kActivations };
constexpr auto enum_texts(Offload) {
  return std::array<std::string_view, 4>{"none", "optimizer", "params", "activations"};
}
FR_CHECK_ENUM(Offload, Offload::kActivations);

/// Layers of each stage where a run states them; empty (count 0) = the software's rule.
struct StageLayers {
  static constexpr int kMax = 256;
  int count = 0;
  std::array<std::int16_t, kMax> layers{};
  bool operator==(const StageLayers&) const = default;
};

struct Plan {
  // training
  std::int64_t sequence_length = 0;  ///< whole sequence, before context parallelism
  std::int64_t micro_batch = 1;      ///< sequences of one model replica in one microbatch
  std::int64_t global_batch = 1;     ///< sequences
  Precision precision = Precision::kBf16;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  DType master_dtype = DType::kFp32;
  DType grad_dtype = DType::kFp32;
  DType moment_dtype = DType::kFp32;
  double moe_imbalance = 1;  ///< rows of the fullest expert-parallel rank over the mean
  // parallelism
  int dp_replicate = 1;
  int dp_shard = 1;
  int cp = 1;
  int tp = 1;
  int pp = 1;
  int ep = 1;
  int etp = 1;
  int zero_stage = 3;
  int virtual_stages = 1;
  bool sequence_parallel = false;
  CpKind cp_kind = CpKind::kAllGather;
  ScheduleKind schedule = ScheduleKind::k1F1B;
  MeshOrder mesh_order = kDefaultMeshOrder;
  StageLayers stage_layers;
  // execution
  Recompute recompute = Recompute::kNone;
  Reshard reshard = Reshard::kDefault;
  AttentionKernel attention = AttentionKernel::kFlash2;
  LossKind loss = LossKind::kPlain;
  Offload offload = Offload::kNone;
  bool compile = false;
  bool cuda_graphs = false;
  bool async_tp = false;

  [[nodiscard]] std::int64_t gpus() const {
    return std::int64_t{dp_replicate} * dp_shard * cp * tp * pp;
  }
  /// Model replicas that see different sequences.
  [[nodiscard]] std::int64_t data_parallel() const { return std::int64_t{dp_replicate} * dp_shard; }
  /// Microbatches of one replica in a step.
  [[nodiscard]] std::int64_t microbatches() const {
    return global_batch / (micro_batch * data_parallel());
  }
  [[nodiscard]] int stages() const { return pp * virtual_stages; }
  [[nodiscard]] std::int64_t local_sequence() const { return sequence_length / cp; }
  [[nodiscard]] Mesh mesh() const { return Mesh({pp, dp_replicate, dp_shard, cp, tp}, mesh_order); }
  bool operator==(const Plan&) const = default;
};

/// Products run on quantised operands.
constexpr bool is_quantised(Precision precision) {
  return precision > Precision::kFp32;
}

/// The dtype that matrix multiplications of the blocks run in.
constexpr DType compute_dtype(Precision precision) {
  switch (precision) {
    case Precision::kBf16:
      return DType::kBf16;
    case Precision::kFp16:
      return DType::kFp16;
    case Precision::kFp32:
      return DType::kFp32;
    default:
      return DType::kFp8;
  }
}

}  // namespace forerun

#pragma once

// A software stack: kernels, rules and defaults of a training framework at a date, as data
// (workloads/catalog/software/*.yaml). Numbers of kind `fitted` are counted by a test.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/data_path.hpp"
#include "base/enum_text.hpp"
#include "base/mapping_reader.hpp"
#include "workloads/modules.hpp"
#include "workloads/plan.hpp"

namespace forerun {

/// How parameters that are cut over ranks (ZeRO 3) are gathered and reduced.
enum class ShardingFamily : std::uint8_t { kFsdp2, kFsdp1 };
constexpr auto enum_texts(ShardingFamily) {
  return std::array<std::string_view, 2>{"fsdp2", "fsdp1"};
}
FR_CHECK_ENUM(ShardingFamily, ShardingFamily::kFsdp1);

/// Where a weight gradient goes when parameters are replicated (ZeRO below 3).
enum class GradientAccumulation : std::uint8_t {
  kProduct,  ///< the weight-gradient product adds to the gradient buffer itself
  kKernel,   ///< a kernel adds each gradient to the buffer
};
constexpr auto enum_texts(GradientAccumulation) {
  return std::array<std::string_view, 2>{"product", "kernel"};
}
FR_CHECK_ENUM(GradientAccumulation, GradientAccumulation::kKernel);

/// How a stack handles parameters that every data-parallel rank holds (DDP, ZeRO 1 and 2).
struct ReplicaRules {
  bool overlap_reduce = true;     ///< gradients are reduced beside the last backward pass
  bool overlap_gather = true;     ///< ZeRO 1: parameters are gathered beside the next forward pass
  bool overlap_zero1 = true;      ///< ZeRO 1 reduces beside the last backward pass too
  bool scatter_gradients = true;  ///< ZeRO 1 reduces by reduce-scatter; else by all-reduce
  double bucket_parameters = 0;   ///< of one collective, at least
  double bucket_per_rank = 0;     ///< and so many parameters a rank of the group
  GradientAccumulation accumulation = GradientAccumulation::kProduct;
  bool whole_master = false;  ///< ZeRO 1: each rank keeps all master parameters beside its own part
  int slice_bytes = 0;        ///< ZeRO 1: further bytes a parameter of the own part
  int gather_bytes = 0;       ///< ZeRO 1: buffers of the gather, bytes a parameter of the rank
  bool bucket_copy = false;   ///< ZeRO 0: gradients also lie in buckets in the compute dtype
};

/// How layers are cut into pipeline stages.
enum class StageSplit : std::uint8_t { kEven, kTorchtitan, kMegatron, kNanotron, kEnds };
constexpr auto enum_texts(StageSplit) {
  return std::array<std::string_view, 5>{"even", "torchtitan", "megatron", "nanotron", "ends"};
}
FR_CHECK_ENUM(StageSplit, StageSplit::kEnds);

enum class ParameterKind : std::uint8_t { kSpec, kMeasured, kEstimated, kFitted };
constexpr auto enum_texts(ParameterKind) {
  return std::array<std::string_view, 4>{"spec", "measured", "estimated", "fitted"};
}
FR_CHECK_ENUM(ParameterKind, ParameterKind::kFitted);

/// A number of a stack with its origin.
struct Parameter {
  std::string name;
  double value = 0;  ///< SI
  ParameterKind kind = ParameterKind::kEstimated;
  std::string source;
};

/// Host time, in seconds, of what a rank's process does to launch work.
struct HostCosts {
  double eager_forward = 0;    ///< an eager operator in the forward pass
  double eager_backward = 0;   ///< an eager operator in the backward pass
  double compiled_region = 0;  ///< entering a compiled graph
  double compiled_kernel = 0;  ///< launching one of its kernels
  double collective = 0;       ///< issuing a collective
  double sharded_unit = 0;     ///< the FSDP hooks of a unit, each pass
  double token_counts = 0;     ///< a wait for the numbers of tokens that experts get, 0 = never
};

/// Memory outside the tensors of a step.
struct MemoryCosts {
  double allocator_slack = 0;  ///< reserved over the peak of allocated, less 1
  double context_bytes = 0;    ///< CUDA context, NCCL buffers, libraries: device less reserved
  double workspace_bytes = 0;  ///< cuBLAS workspaces, inside the allocator
};

struct SoftwareStack {
  std::string name;
  std::string description;
  std::string date;
  std::vector<std::string> sources;
  ShardingFamily sharding = ShardingFamily::kFsdp2;
  StageSplit stage_split = StageSplit::kEven;
  ModuleChoices modules;
  ReplicaRules replicas;
  bool compile_needed_for_async_tp = true;
  bool kv_heads_replicated = false;  ///< tp may exceed the number of key/value heads
  bool regather_in_backward = false;
  bool blocking_sends = true;        ///< a stage waits for its sends
  bool persistent_messages = false;  ///< buffers of messages between stages outlive the step
  bool optimizer_fused = false;      ///< one pass over the states; else foreach
  bool clip_grad_norm = true;
  bool fp8_all_gather = true;
  bool fp8_fast_accumulation_backward = true;
  int etp_default = 1;  ///< 0: as tp
  int selective_matmul_every = 2;
  // Defaults of a run that is silent.
  std::optional<bool> compile;
  std::optional<Recompute> recompute;
  std::optional<LossKind> loss_with_tp;
  std::optional<int> zero_stage;
  std::optional<bool> async_tp;
  CpKind cp_kind = CpKind::kAllGather;
  AttentionKernel attention = AttentionKernel::kFlash2;
  bool sequence_parallel_with_tp = true;
  ScheduleKind schedule = ScheduleKind::k1F1B;
  int looped_virtual_stages = 2;
  HostCosts host;
  MemoryCosts memory;
  std::vector<Parameter> parameters;  ///< every number above, with kind and source
};

SoftwareStack load_software(const DataPath& data, const std::string& name, const Place& place,
                            const std::string& key);

/// What is taken where a run names no software: even stages, fused kernels of no framework.
inline constexpr const char* kGenericSoftware = "generic";
inline constexpr const char* kSoftwareFolder = "workloads/catalog/software";

}  // namespace forerun

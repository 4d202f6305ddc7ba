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

/// How data-parallel state is sharded and moved.
enum class ShardingFamily : std::uint8_t { kFsdp2 };
constexpr auto enum_texts(ShardingFamily) {
  return std::array<std::string_view, 1>{"fsdp2"};
}
FR_CHECK_ENUM(ShardingFamily, ShardingFamily::kFsdp2);

/// How layers are cut into pipeline stages.
enum class StageSplit : std::uint8_t { kEven, kTorchtitan, kMegatron };
constexpr auto enum_texts(StageSplit) {
  return std::array<std::string_view, 3>{"even", "torchtitan", "megatron"};
}
FR_CHECK_ENUM(StageSplit, StageSplit::kMegatron);

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

#pragma once

// A run as the user wrote it: every setting optional, every given setting with its place. Nothing
// is filled in here; workloads/resolve.hpp makes a Job of it. The same struct is made from a YAML
// or JSON run file, from a row of a table of runs, and from a Python mapping.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/node.hpp"
#include "base/quantity.hpp"
#include "workloads/model_spec.hpp"
#include "workloads/plan.hpp"

namespace forerun {

struct ClusterSettings {
  std::optional<std::string> name;  ///< catalogue name or path
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> gpus;
  std::optional<std::int64_t> gpus_per_node;
  std::optional<std::string> gpu_name;
  std::optional<Bytes> gpu_memory;
  std::optional<std::int64_t> nic_count;
  std::optional<BytesPerSecond> nic_bandwidth;
  bool nic_bandwidth_in_bytes = false;  ///< written in bytes a second, which is rarely meant
  std::optional<std::int64_t> nodes_per_rack;
  std::optional<double> oversubscription;
};

struct TrainingSettings {
  std::optional<std::int64_t> sequence_length, micro_batch, global_batch, document_length;
  std::optional<Precision> precision;
  std::optional<OptimizerKind> optimizer;
  std::optional<DType> master_dtype, grad_dtype, moment_dtype;
  std::optional<double> moe_imbalance;
};

/// Degrees may be -1: what is left of the GPUs.
struct ParallelismSettings {
  std::optional<std::int64_t> dp_shard, dp_replicate, tp, cp, pp, ep, etp, zero_stage,
      virtual_stages;
  std::optional<bool> sequence_parallel;
  std::optional<CpKind> cp_kind;
  std::optional<ScheduleKind> schedule;
  std::optional<std::vector<std::int64_t>> stage_layers;
  std::optional<MeshOrder> mesh_order;
  std::optional<std::string> placement;
};

struct ExecutionSettings {
  std::optional<Recompute> recompute;
  std::optional<bool> compile, cuda_graphs, async_tp;
  std::optional<Reshard> reshard_after_forward;
  std::optional<std::string> tp_overlap;
  std::optional<AttentionKernel> attention;
  std::optional<LossKind> loss;
  std::optional<Offload> cpu_offload;
};

/// What the user measured on his cluster, as bus bandwidth.
struct MeasuredSettings {
  std::optional<BytesPerSecond> allreduce_busbw, allgather_busbw, reducescatter_busbw;
};

struct RunFile {
  ClusterSettings cluster;
  std::optional<std::string> model_name;  ///< catalogue name or path
  std::optional<ModelSpec> model;         ///< inline
  TrainingSettings training;
  ParallelismSettings parallelism;
  ExecutionSettings execution;
  std::optional<std::string> software;
  MeasuredSettings measured;
  std::map<std::string, Mark, std::less<>> places;  ///< of given settings, by dotted key
  Mark origin;                                      ///< of the whole

  /// Where a setting stands; else where its section or the whole run does.
  [[nodiscard]] Place place_of(std::string_view dotted) const;
};

/// Reads a document. Throws InputError.
RunFile read_run(const Node& root);

/// Reads a file ("-": standard input) and applies settings "dotted.key=value" on top.
RunFile load_run(const std::string& path, const std::vector<std::string>& sets = {});
/// The same from text; `name` stands in messages.
RunFile read_run_text(const std::string& text, const std::string& name,
                      const std::vector<std::string>& sets = {});

/// Applies one "dotted.key=value" to a document. Throws InputError.
void apply_set(Node& root, const std::string& assignment);

}  // namespace forerun

#include "workloads/software.hpp"

#include "base/catalog_file.hpp"

namespace forerun {
namespace {

/// Reads numbers of the form {value, kind, source} and keeps them as Parameters beside their use.
class ParameterReader {
 public:
  ParameterReader(const Node& node, const std::string& path, std::vector<std::string> known,
                  SoftwareStack& stack)
      : file_(node, path, std::move(known)), stack_(stack) {}

  template <class Convert>
  double read(std::string_view key, Convert convert) {
    const std::string dotted = file_.dotted(key);
    const MappingReader entry(file_.need(key), dotted, {"value", "kind", "source"});
    const double value = convert(entry.need("value"), dotted + ".value");
    stack_.parameters.push_back({dotted, value, entry.required("kind", to_enum<ParameterKind>),
                                 entry.required("source", to_text_value)});
    return value;
  }
  double seconds(std::string_view key) {
    return read(key, [](const Node& n, const std::string& k) { return to_seconds(n, k).value(); });
  }
  double bytes(std::string_view key) {
    return read(key, [](const Node& n, const std::string& k) { return to_bytes(n, k).value(); });
  }
  double number(std::string_view key) { return read(key, to_number); }

 private:
  MappingReader file_;
  SoftwareStack& stack_;
};

void read_host(const Node& node, SoftwareStack& stack) {
  ParameterReader host(node, "host",
                       {"eager_forward", "eager_backward", "compiled_region", "compiled_kernel",
                        "collective", "sharded_unit", "token_counts"},
                       stack);
  stack.host = {host.seconds("eager_forward"),
                host.seconds("eager_backward"),
                host.seconds("compiled_region"),
                host.seconds("compiled_kernel"),
                host.seconds("collective"),
                host.seconds("sharded_unit"),
                node.find("token_counts") != nullptr ? host.seconds("token_counts") : 0};
}

void read_memory(const Node& node, SoftwareStack& stack) {
  ParameterReader memory(node, "memory", {"allocator_slack", "context", "workspace"}, stack);
  stack.memory = {memory.number("allocator_slack"), memory.bytes("context"),
                  memory.bytes("workspace")};
}

void read_modules(const Node& node, SoftwareStack& stack) {
  const MappingReader file(node, "modules",
                           {"fused_norm", "fused_rotary", "expand_kv", "merged_projections",
                            "head_copies", "fused_activation", "fused_loss", "fused_quantise"});
  stack.modules.fused_norm = file.required("fused_norm", to_bool);
  stack.modules.fused_rotary = file.required("fused_rotary", to_bool);
  stack.modules.expand_kv = file.required("expand_kv", to_bool);
  stack.modules.merged_projections = file.required("merged_projections", to_bool);
  stack.modules.head_copies = file.required("head_copies", to_bool);
  stack.modules.fused_activation = file.required("fused_activation", to_bool);
  stack.modules.fused_loss = file.required("fused_loss", to_bool);
  stack.modules.fused_quantise = file.required("fused_quantise", to_bool);
}

void read_replicas(const Node& node, SoftwareStack& stack) {
  const MappingReader file(
      node, "replicas",
      {"overlap_reduce", "overlap_gather", "overlap_zero1", "scatter_gradients",
       "bucket_parameters", "bucket_per_rank", "accumulation", "whole_master", "slice_bytes",
       "gather_bytes", "bucket_copy"});
  ReplicaRules& out = stack.replicas;
  out.overlap_reduce = file.required("overlap_reduce", to_bool);
  out.overlap_gather = file.required("overlap_gather", to_bool);
  out.overlap_zero1 = file.required("overlap_zero1", to_bool);
  out.scatter_gradients = file.required("scatter_gradients", to_bool);
  out.bucket_parameters = static_cast<double>(
      file.required("bucket_parameters", integer_in({1, std::int64_t{1} << 40})));
  out.bucket_per_rank =
      static_cast<double>(file.required("bucket_per_rank", integer_in({0, std::int64_t{1} << 40})));
  out.accumulation = file.required("accumulation", to_enum<GradientAccumulation>);
  out.whole_master = file.required("whole_master", to_bool);
  out.slice_bytes = static_cast<int>(file.required("slice_bytes", integer_in({0, 64})));
  out.gather_bytes = static_cast<int>(file.required("gather_bytes", integer_in({0, 64})));
  out.bucket_copy = file.required("bucket_copy", to_bool);
}

void read_rules(const Node& node, SoftwareStack& stack) {
  const MappingReader file(
      node, "rules",
      {"sharding", "stage_split", "compile_needed_for_async_tp", "kv_heads_replicated",
       "regather_in_backward", "blocking_sends", "persistent_messages", "optimizer_fused",
       "clip_grad_norm", "fp8_all_gather", "fp8_fast_accumulation_backward", "etp_default",
       "selective_matmul_every"});
  stack.sharding = file.required("sharding", to_enum<ShardingFamily>);
  stack.stage_split = file.required("stage_split", to_enum<StageSplit>);
  stack.compile_needed_for_async_tp = file.required("compile_needed_for_async_tp", to_bool);
  stack.kv_heads_replicated = file.required("kv_heads_replicated", to_bool);
  stack.regather_in_backward = file.required("regather_in_backward", to_bool);
  stack.blocking_sends = file.required("blocking_sends", to_bool);
  stack.persistent_messages = file.required("persistent_messages", to_bool);
  stack.optimizer_fused = file.required("optimizer_fused", to_bool);
  stack.clip_grad_norm = file.required("clip_grad_norm", to_bool);
  stack.fp8_all_gather = file.required("fp8_all_gather", to_bool);
  stack.fp8_fast_accumulation_backward = file.required("fp8_fast_accumulation_backward", to_bool);
  const std::string etp = file.required("etp_default", to_text_value);
  stack.etp_default =
      etp == "tp"
          ? 0
          : static_cast<int>(to_integer(file.need("etp_default"), "rules.etp_default", {1, 1024}));
  stack.selective_matmul_every =
      static_cast<int>(file.required("selective_matmul_every", integer_in({1, 64})));
}

void read_defaults(const Node& node, SoftwareStack& stack) {
  const MappingReader file(
      node, "defaults",
      {"compile", "recompute", "loss_with_tp", "attention", "sequence_parallel_with_tp", "schedule",
       "looped_virtual_stages", "zero_stage", "async_tp", "cp_kind"});
  stack.compile = file.optional("compile", to_bool);
  stack.recompute = file.optional("recompute", to_enum<Recompute>);
  if (const auto zero = file.optional("zero_stage", integer_in({0, 3}))) {
    stack.zero_stage = static_cast<int>(*zero);
  }
  stack.async_tp = file.optional("async_tp", to_bool);
  stack.cp_kind = file.optional("cp_kind", to_enum<CpKind>).value_or(CpKind::kAllGather);
  stack.loss_with_tp = file.optional("loss_with_tp", to_enum<LossKind>);
  stack.attention = file.required("attention", to_enum<AttentionKernel>);
  stack.sequence_parallel_with_tp = file.required("sequence_parallel_with_tp", to_bool);
  stack.schedule = file.required("schedule", to_enum<ScheduleKind>);
  stack.looped_virtual_stages =
      static_cast<int>(file.required("looped_virtual_stages", integer_in({2, 64})));
}

}  // namespace

SoftwareStack load_software(const DataPath& data, const std::string& name, const Place& place,
                            const std::string& key) {
  const Node root = read_catalog_file(data, kSoftwareFolder, "software", name, place, key);
  const MappingReader file(root, "",
                           {"description", "date", "sources", "modules", "replicas", "rules",
                            "defaults", "host", "memory"});
  SoftwareStack stack;
  stack.name = name;
  stack.description = file.required("description", to_text_value);
  stack.date = file.required("date", to_text_value);
  stack.sources = file.required("sources", to_texts);
  read_modules(file.need("modules"), stack);
  read_replicas(file.need("replicas"), stack);
  read_rules(file.need("rules"), stack);
  read_defaults(file.need("defaults"), stack);
  read_host(file.need("host"), stack);
  read_memory(file.need("memory"), stack);
  return stack;
}

}  // namespace forerun

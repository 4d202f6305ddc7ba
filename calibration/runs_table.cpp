#include "calibration/runs_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "calibration/software_names.hpp"
#include "topology/catalog.hpp"

namespace forerun {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// Without case, blanks, hyphens and underscores.
std::string folded(std::string_view text) {
  std::string out;
  for (const unsigned char c : text) {
    if (c != ' ' && c != '-' && c != '_') out += static_cast<char>(std::tolower(c));
  }
  return out;
}

constexpr IntRange kSize{1, std::int64_t{1} << 30};
constexpr IntRange kDegree{1, std::int64_t{1} << 24};
constexpr IntRange kBatch{1, std::int64_t{1} << 32};
constexpr IntRange kCount{0, std::int64_t{1} << 30};  // 0: none

class RowReader {
 public:
  RowReader(const CsvTable& table, const CsvTable::Row& row, const DataPath& data,
            const RunsReadOptions& options)
      : table_(table), row_(row), data_(data), options_(options) {}

  RunsRow read() {
    if (row_.cells.size() != table_.columns().size()) {
      throw InputError(table_.place(row_), "",
                       fmt::format("the row has {} cells, the header has {}", row_.cells.size(),
                                   table_.columns().size()));
    }
    out_.id = std::string(cell("id"));
    out_.run.origin = {std::make_shared<const std::string>(table_.name()), row_.line, 0};
    software();
    model();
    cluster();
    parallelism();  // before training: the batch follows from the replicas
    training();
    unstated_layout();
    execution();
    printed_memory();
    if (options_.use_measured_network) measured();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string_view cell(std::string_view column) const {
    return table_.cell(row_, column);
  }

  [[noreturn]] void refuse(std::string_view column, const std::string& problem) const {
    throw InputError(table_.place(row_), std::string(column), problem);
  }

  std::optional<double> number(std::string_view column) const {
    const std::string_view text = cell(column);
    if (text.empty()) return std::nullopt;
    double value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || rest != text.data() + text.size() || !std::isfinite(value)) {
      refuse(column, fmt::format("found '{}', a number is wanted", text));
    }
    return value;
  }
  /// A whole number, which tables also write as 8.0.
  std::optional<std::int64_t> count(std::string_view column, IntRange range = kCount) const {
    const auto value = number(column);
    if (!value) return std::nullopt;
    if (*value != std::floor(*value)) {
      refuse(column, fmt::format("found '{}', a whole number is wanted", cell(column)));
    }
    if (*value < static_cast<double>(range.min)) {
      refuse(column, fmt::format("found {}, must be at least {}", cell(column), range.min));
    }
    if (*value > static_cast<double>(range.max)) {
      refuse(column, fmt::format("found {}, must be at most {}", cell(column), range.max));
    }
    return static_cast<std::int64_t>(*value);
  }
  std::int64_t required(std::string_view column, IntRange range = kSize) const {
    const auto value = count(column, range);
    if (!value) throw Unsupported(fmt::format("{} is not stated", column));
    return *value;
  }
  std::optional<bool> flag(std::string_view column) const {
    const auto value = count(column, {0, 1});
    return value ? std::optional<bool>(*value != 0) : std::nullopt;
  }

  void assume(std::string key, std::string value, std::string why) {
    out_.assumptions.push_back({std::move(key), std::move(value), std::move(why)});
  }

  [[nodiscard]] bool has_word(std::string_view column,
                              std::initializer_list<std::string_view> words) const {
    const std::string text = folded(cell(column));
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return text.find(word) != std::string::npos; });
  }

  void unknown_word(std::string_view column, std::string key) {
    if (!cell(column).empty()) {
      assume(std::move(key), "default", fmt::format("'{}' is not known", cell(column)));
    }
  }

  // ---- parts ---------------------------------------------------------------------------------

  void software() {
    const StackChoice choice = choose_stack(data_, cell("framework"), cell("framework_version"));
    out_.run.software = choice.stack;
    if (!choice.exact) {
      assume("software", choice.stack, fmt::format("nearest to '{}'", cell("framework_version")));
    }
  }

  void model() {
    ModelSpec m;
    m.name = std::string(cell("model"));
    m.source = "runs table";
    m.layers = required("layers");
    m.hidden = required("hidden");
    m.gated_mlp = flag("gated_mlp").value_or(true);
    m.heads = or_assumed("heads", std::max<std::int64_t>(1, m.hidden / 128));
    m.kv_heads = count("kv_heads", kSize).value_or(m.heads);
    m.head_dim = count("head_dim", kSize).value_or(m.hidden / m.heads);
    const std::int64_t ffn = m.gated_mlp ? 8 * m.hidden / 3 / 64 * 64 : 4 * m.hidden;
    m.ffn_hidden = or_assumed("ffn_hidden", ffn);
    m.vocab = or_assumed("vocab", 50304);
    m.tied_embeddings = flag("tied_embeddings").value_or(false);
    m.experts = count("experts").value_or(0);
    if (m.moe() && !count("kv_heads", kSize) && !count("head_dim", kSize)) {
      throw Unsupported("latent attention (experts without kv_heads and head_dim)");
    }
    m.top_k = count("top_k").value_or(0);
    m.expert_ffn = count("expert_ffn", kSize).value_or(m.ffn_hidden);
    m.shared_experts = count("shared_experts").value_or(0);
    check_model(m, table_.place(row_), "model");
    out_.run.model = m;
  }

  std::int64_t or_assumed(std::string_view column, std::int64_t fallback) {
    const auto value = count(column, kSize);
    if (value) return *value;
    assume("model." + std::string(column), std::to_string(fallback), "not stated");
    return fallback;
  }

  void cluster() {
    ClusterSettings& c = out_.run.cluster;
    const std::string gpu = lower(cell("hardware"));
    if (!data_.find(std::string(kGpuFolder) + "/" + gpu + ".yaml")) {
      throw Unsupported("GPU " + (gpu.empty() ? "not stated" : gpu));
    }
    c.gpus = required("gpus");
    c.gpus_per_node = count("gpus_per_node", {1, 1024}).value_or(8);
    if (const auto gbits = number("inter_link_gbps_per_gpu"); gbits && *gbits > 0) {
      c.nic_bandwidth = BytesPerSecond(*gbits * 1e9 / 8);
      c.nic_count = c.gpus_per_node;
    }
    c.gpu_name = gpu;
    const GpuSpec spec = load_gpu(data_, gpu, table_.place(row_), "hardware");
    if (!spec.usual_cluster.value.empty()) c.name = spec.usual_cluster.value;
    if (gpu == "h100-sxm-80gb" && has_word("framework", {"nanotron"})) {
      c.name = "aws-p5";
      assume("cluster.name", "aws-p5", "where nanotron's published runs were made");
    }
  }

  void parallelism() {
    ParallelismSettings& p = out_.run.parallelism;
    p.dp_replicate = count("dp_replicate", kDegree);
    p.dp_shard = count("dp_shard", kDegree);
    p.tp = count("tp", kDegree);
    p.cp = count("cp", kDegree);
    p.pp = count("pp", kDegree);
    p.ep = count("ep", kDegree);
    if (!p.dp_shard) p.dp_shard = -1;
    p.zero_stage = count("zero_stage", {0, 3});
    p.sequence_parallel = flag("sequence_parallel");
    if (const auto stages = count("virtual_stages", {0, 1024}); stages && *stages > 0) {
      p.virtual_stages = stages;
    }
    schedule();
    if (has_word("cp_kind", {"allgather"})) {
      p.cp_kind = CpKind::kAllGather;
    } else if (has_word("cp_kind", {"ring", "p2p"})) {
      p.cp_kind = CpKind::kRing;
    } else if (has_word("cp_kind", {"a2a", "ulysses"})) {
      p.cp_kind = CpKind::kUlysses;
    } else {
      unknown_word("cp_kind", "parallelism.cp_kind");
    }
  }

  /// What a published run must have stated to its software, though its table does not.
  void unstated_layout() {
    ParallelismSettings& p = out_.run.parallelism;
    const std::int64_t layers = out_.run.model->layers;
    const std::int64_t stages = p.pp.value_or(1) * p.virtual_stages.value_or(1);
    if (has_word("framework", {"megatron"}) && stages > 1 && stages <= layers + 2 &&
        stages <= StageLayers::kMax && layers % stages != 0) {
      std::vector<std::int64_t> split(static_cast<std::size_t>(stages), layers / stages);
      const std::int64_t extra = layers % stages, first = (stages - extra) / 2;
      for (std::int64_t i = first; i < first + extra; ++i)
        ++split[static_cast<std::size_t>(i)];
      p.stage_layers = split;
      assume("parallelism.stage_layers", "uneven", "the layout is not stated");
    }
    const std::int64_t ep = p.ep.value_or(1), ranks = replicas() * p.cp.value_or(1);
    if (ep > 1 && ranks % ep != 0 && ranks * p.tp.value_or(1) % ep == 0) {
      p.etp = 1;  // else the expert groups would have no room
      assume("parallelism.etp", "1", "not stated; expert groups need it");
    }
  }

  void schedule() {
    const std::string wanted = folded(cell("pp_schedule"));
    if (wanted.empty()) return;
    for (std::size_t i = 0; i < enum_texts(ScheduleKind{}).size(); ++i) {
      if (folded(enum_texts(ScheduleKind{})[i]) == wanted) {
        out_.run.parallelism.schedule = static_cast<ScheduleKind>(i);
        return;
      }
    }
    throw Unsupported(fmt::format("schedule {}", cell("pp_schedule")));
  }

  /// Model replicas, from the degrees or what they leave of the GPUs.
  [[nodiscard]] std::int64_t replicas() const {
    const ParallelismSettings& p = out_.run.parallelism;
    if (*p.dp_shard > 0) return *p.dp_shard * p.dp_replicate.value_or(1);
    const double model_gpus = static_cast<double>(p.tp.value_or(1)) *
                              static_cast<double>(p.cp.value_or(1)) *
                              static_cast<double>(p.pp.value_or(1));
    const auto gpus = static_cast<double>(*out_.run.cluster.gpus);
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(gpus / model_gpus));
  }

  void training() {
    TrainingSettings& t = out_.run.training;
    t.sequence_length = required("seq_len");
    const auto micro = count("micro_batch", kDegree), global = count("global_batch", kBatch);
    if (!micro && !global) throw Unsupported("micro_batch and global_batch are not stated");
    const std::int64_t steps = std::max<std::int64_t>(1, count("grad_accum").value_or(1));
    if (!global && *micro > kBatch.max / replicas() / steps) {
      refuse("micro_batch", fmt::format("found {}, which makes more than {} sequences a step",
                                        *micro, kBatch.max));
    }
    // A pipeline lives of many microbatches: of one sequence where the table is silent.
    const bool pipeline = out_.run.parallelism.pp.value_or(1) > 1;
    const std::int64_t whole = std::max<std::int64_t>(1, global.value_or(0) / replicas() / steps);
    t.micro_batch = micro.value_or(pipeline ? 1 : whole);
    t.global_batch = global.value_or(*t.micro_batch * replicas() * steps);
    if (!micro) assume("training.micro_batch", std::to_string(*t.micro_batch), "not stated");
    if (!global) assume("training.global_batch", std::to_string(*t.global_batch), "not stated");
    precision();
    optimizer();
  }

  void precision() {
    const std::string text = lower(cell("precision"));
    if (text.empty()) return;
    if (text == "fp8") {
      out_.run.training.precision = Precision::kFp8Tensorwise;
      assume("training.precision", "fp8-tensorwise", "the stack's fp8 recipe");
      return;
    }
    out_.run.training.precision = from_text<Precision>(text.substr(0, text.find(' ')));
    if (!out_.run.training.precision) unknown_word("precision", "training.precision");
  }

  void optimizer() {
    TrainingSettings& t = out_.run.training;
    if (has_word("optimizer", {"lora", "adapter"})) throw Unsupported("LoRA");
    if (has_word("optimizer", {"8bit"})) {
      t.optimizer = OptimizerKind::kAdamW8bit;
    } else if (has_word("optimizer", {"adam"})) {
      t.optimizer = OptimizerKind::kAdamW;
    } else if (has_word("optimizer", {"adafactor"})) {
      t.optimizer = OptimizerKind::kAdafactor;
    } else if (has_word("optimizer", {"muon"})) {
      t.optimizer = OptimizerKind::kMuon;
    } else if (has_word("optimizer", {"sgd"})) {
      t.optimizer = OptimizerKind::kSgd;
    } else {
      unknown_word("optimizer", "training.optimizer");
    }
    if (has_word("optimizer", {"bf16moments", "bf16state", "bf16withfp32"})) {
      t.moment_dtype = DType::kBf16;
    }
  }

  void execution() {
    ExecutionSettings& e = out_.run.execution;
    e.compile = flag("compile");
    e.async_tp = flag("async_tp");
    recompute();
    attention();
    const std::string_view reshard = cell("reshard_after_forward");
    if (reshard == "1") e.reshard_after_forward = Reshard::kAlways;
    if (reshard == "0") e.reshard_after_forward = Reshard::kNever;
    if (reshard == "all but last block" || reshard == "default")
      e.reshard_after_forward = Reshard::kDefault;
    if (!reshard.empty() && !e.reshard_after_forward) {
      unknown_word("reshard_after_forward", "execution.reshard_after_forward");
    }
    const std::string offload = folded(cell("cpu_offload"));
    if (!offload.empty() && offload != "none" && offload != "0") {
      throw Unsupported(fmt::format("cpu_offload {}", cell("cpu_offload")));
    }
  }

  void recompute() {
    const std::string text = lower(cell("recompute"));
    if (text.empty()) return;
    out_.run.execution.recompute = from_text<Recompute>(text);
    if (out_.run.execution.recompute) return;
    if (has_word("recompute", {"every", "save:", "blocks"})) {
      throw Unsupported(fmt::format("recompute {}", text));
    }
    unknown_word("recompute", "execution.recompute");
  }

  void attention() {
    ExecutionSettings& e = out_.run.execution;
    if (has_word("attention_kernel", {"unfused", "eager"})) {
      e.attention = AttentionKernel::kUnfused;
    } else if (has_word("attention_kernel", {"fa3", "flashattention3"})) {
      e.attention = AttentionKernel::kFlash3;
    } else if (has_word("attention_kernel", {"cudnn"})) {
      e.attention = AttentionKernel::kCudnn;
    } else if (has_word("attention_kernel", {"flash"}) && has_word("framework", {"composer"})) {
      return;  // the stack's own generation
    } else if (has_word("attention_kernel", {"fa2", "flash"})) {
      e.attention = AttentionKernel::kFlash2;
    } else {
      unknown_word("attention_kernel", "execution.attention");
    }
  }

  void printed_memory() {
    const std::string_view kind = cell("peak_mem_kind");
    out_.memory_kind = from_text<MemoryKind>(kind).value_or(MemoryKind::kReserved);
    out_.last_rank = cell("logged_rank").starts_with("last");
  }

  void measured() {
    MeasuredSettings& m = out_.run.measured;
    const auto busbw = [&](std::string_view column) -> std::optional<BytesPerSecond> {
      const auto value = number(column);
      return value && *value > 0 ? std::optional(BytesPerSecond(*value * 1e9)) : std::nullopt;
    };
    m.allreduce_busbw = busbw("nccl_allreduce_GBps");
    m.allgather_busbw = busbw("nccl_allgather_GBps");
    m.reducescatter_busbw = busbw("nccl_reducescatter_GBps");
  }

  const CsvTable& table_;
  const CsvTable::Row& row_;
  const DataPath& data_;
  const RunsReadOptions& options_;
  RunsRow out_;
};

}  // namespace

RunsRow read_runs_row(const CsvTable& table, const CsvTable::Row& row, const DataPath& data,
                      const RunsReadOptions& options) {
  return RowReader(table, row, data, options).read();
}

}  // namespace forerun

#include "workloads/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/nearest.hpp"
#include "base/units.hpp"
#include "topology/catalog.hpp"
#include "workloads/rules.hpp"

namespace forerun {
namespace {

/// Beyond these, products of a plan's numbers would leave 64 bits. Both are far above what is
/// built.
constexpr std::int64_t kMostGpus = std::int64_t{1} << 30;
constexpr std::int64_t kMostStages = std::int64_t{1} << 20;

class Resolver {
 public:
  Resolver(const RunFile& run, const DataPath* data) : run_(run), data_(data) {}

  Job run() {
    refuse_missing();
    job_.scenario.measured = run_.measured;
    software();
    model();
    cluster();
    return plan();
  }

  Job run_in(const Scenario& scenario) {
    job_.scenario = scenario;
    return plan();
  }

 private:
  Job plan() {
    training();
    execution();
    parallelism();
    job_.warnings = plan_warnings(job_.scenario, job_.plan);
    cluster_warnings();
    if (job_.plan.pp == 1) {  // without effect, as a warning has said
      job_.plan.virtual_stages = 1;
      job_.plan.schedule = ScheduleKind::k1F1B;
    }
    return std::move(job_);
  }

  [[noreturn]] void refuse(std::string_view key, const std::string& problem) const {
    throw InputError(run_.place_of(key), std::string(key), problem);
  }

  /// Where several settings are missing, all are named at once, with the option that gives each.
  void refuse_missing() const {
    const ClusterSettings& c = run_.cluster;
    const TrainingSettings& t = run_.training;
    std::vector<std::string> missing;
    const auto want = [&](bool given, const char* option) {
      if (!given) missing.emplace_back(std::string("--set ") + option);
    };
    want(c.name || c.gpu_name, "cluster.name=NAME");
    want(c.nodes || c.gpus, "cluster.gpus=N");
    want(run_.model || run_.model_name, "model=NAME");
    want(t.sequence_length.has_value(), "training.sequence_length=N");
    want(t.micro_batch.has_value(), "training.micro_batch=N");
    want(t.global_batch.has_value(), "training.global_batch=N");
    if (missing.size() < 2) return;  // the reader of that setting says more
    throw InputError({run_.origin.place().source, 0, 0}, "",
                     fmt::format("{} settings are missing: {}", missing.size(), join(missing)));
  }

  void assume(std::string key, std::string value, std::string why) {
    job_.assumptions.push_back({std::move(key), std::move(value), std::move(why)});
  }

  /// The given value, or a default that becomes an assumption.
  template <class T>
  T given_or(const std::optional<T>& given, T fallback, const char* key, const std::string& text,
             const std::string& why) {
    if (given) return *given;
    assume(key, text, why);
    return fallback;
  }

  [[nodiscard]] std::string by_software() const {
    return "default of " + job_.scenario.software.name;
  }

  // ---- software, model -----------------------------------------------------------------------

  void software() {
    const std::string name =
        given_or<std::string>(run_.software, kGenericSoftware, "software", kGenericSoftware,
                              "no software given: rules of no framework");
    job_.scenario.software = load_software(*data_, name, run_.place_of("software"), "software");
  }

  void model() {
    if (run_.model) {
      job_.scenario.model = *run_.model;
    } else if (run_.model_name) {
      job_.scenario.model = load_model(*data_, *run_.model_name, run_.place_of("model"), "model");
    } else {
      refuse("model",
             "is missing; a catalogue name, a path or an inline mapping is wanted "
             "(--set model=NAME)");
    }
  }

  // ---- cluster -------------------------------------------------------------------------------

  void cluster() {
    const ClusterSettings& given = run_.cluster;
    ClusterSpec& spec = job_.scenario.cluster;
    if (given.name) {
      spec = load_cluster(*data_, *given.name, run_.place_of("cluster.name"), "cluster");
    } else if (given.gpu_name) {
      inline_cluster();
    } else {
      refuse("cluster",
             "is missing; a catalogue name with nodes or gpus, or an inline description "
             "with gpu is wanted (--set cluster.name=NAME --set cluster.gpus=N)");
    }
    overrides();
    size();
  }

  void inline_cluster() {
    const ClusterSettings& given = run_.cluster;
    ClusterSpec& spec = job_.scenario.cluster;
    spec.name = "inline";
    spec.gpu =
        load_gpu(*data_, *given.gpu_name, run_.place_of("cluster.gpu.name"), "cluster.gpu.name");
    const ClusterSpec usual = usual_cluster(spec.gpu);
    const std::int64_t node = usual.gpus_per_node.value;
    spec.gpus_per_host = usual.gpus_per_host;
    spec.gpus_per_node.value =
        given_or<std::int64_t>(given_node(usual), node, "cluster.gpus_per_node",
                               std::to_string(node), "the usual node of this GPU");
    spec.nics_per_node.value = spec.gpus_per_node.value;
    spec.nic_bandwidth.value =
        given_or(given.nic_bandwidth, spec.gpu.usual_nic.value, "cluster.nic.bandwidth",
                 text_of(spec.gpu.usual_nic.value), "the usual NIC beside this GPU");
    spec.transport = usual.transport;
    spec.layout = usual.layout;
    const std::int64_t rack = usual.nodes_per_rack.value;
    spec.nodes_per_rack.value = given_or<std::int64_t>(
        given.nodes_per_rack, rack, "cluster.racks.nodes_per_rack", std::to_string(rack),
        spec.layout.value == NetworkLayout::kRail ? "the usual pod of a rail-optimised network"
                                                  : "the usual rack");
    spec.oversubscription.value = given.oversubscription.value_or(1.0);
    assume("cluster.fabric",
           fmt::format("{} {}", to_text(spec.layout.value), to_text(spec.transport.value)),
           spec.gpu.usual_cluster.value.empty()
               ? "an inline cluster does not name one"
               : "an inline cluster does not name one; as " + spec.gpu.usual_cluster.value);
  }

  /// The cluster whose fabric is meant where only this GPU is named.
  ClusterSpec usual_cluster(const GpuSpec& gpu) const {
    const std::string& name = gpu.usual_cluster.value;
    if (!name.empty()) {
      return load_cluster(*data_, name, run_.place_of("cluster.gpu.name"), "usual_cluster");
    }
    ClusterSpec spec;
    spec.gpus_per_node.value = 8;
    spec.transport.value = Transport::kInfiniband;
    spec.layout.value = NetworkLayout::kRail;
    spec.nodes_per_rack.value = 32;
    return spec;
  }

  /// Whether the run names the hosts inside NVLink domains: they are its nodes, the domain stays.
  [[nodiscard]] bool names_hosts(const ClusterSpec& spec) const {
    const std::int64_t host = spec.gpus_per_host.value;
    return host > 0 && run_.cluster.gpus_per_node.value_or(host) == host;
  }

  [[nodiscard]] std::optional<std::int64_t> given_node(const ClusterSpec& spec) const {
    return names_hosts(spec) ? std::nullopt : run_.cluster.gpus_per_node;
  }

  /// Inline keys change a catalogue cluster too.
  void overrides() {
    const ClusterSettings& given = run_.cluster;
    ClusterSpec& spec = job_.scenario.cluster;
    if (given.gpu_name && *given.gpu_name != spec.gpu.name) {
      spec.gpu =
          load_gpu(*data_, *given.gpu_name, run_.place_of("cluster.gpu.name"), "cluster.gpu.name");
    }
    const auto set = [](auto& field, const auto& value) {
      if (value) field = {*value, ValueKind::kUser, "run file"};
    };
    set(spec.gpu.memory, given.gpu_memory);
    std::optional<std::int64_t> nics = given.nic_count;
    if (nics && names_hosts(spec)) *nics *= spec.gpus_per_node.value / spec.gpus_per_host.value;
    set(spec.gpus_per_node, given_node(spec));
    set(spec.nics_per_node, nics);
    set(spec.nic_bandwidth, given.nic_bandwidth);
    set(spec.nodes_per_rack, given.nodes_per_rack);
    set(spec.oversubscription, given.oversubscription);
  }

  void size() {
    const ClusterSettings& given = run_.cluster;
    ClusterSpec& spec = job_.scenario.cluster;
    const std::int64_t per_node =
        names_hosts(spec) ? spec.gpus_per_host.value : spec.gpus_per_node.value;
    if (!given.nodes && !given.gpus) {
      refuse("cluster", "nodes or gpus is missing (--set cluster.gpus=N)");
    }
    spec.gpus = given.gpus.value_or(given.nodes.value_or(0) * per_node);
    if (spec.gpus > kMostGpus) {
      refuse(given.gpus ? "cluster.gpus" : "cluster.nodes",
             fmt::format("found {} GPUs, at most {} are read", spec.gpus, kMostGpus));
    }
    if (names_hosts(spec)) spread_over_domains();
    const std::int64_t domain = spec.gpus_per_node.value;
    spec.nodes = (spec.gpus + domain - 1) / domain;
    if (given.nodes && given.gpus && *given.nodes * per_node != *given.gpus) {
      refuse("cluster.gpus",
             fmt::format("found {} GPUs and {} nodes of {}, which are {}; give one "
                         "of them, or numbers that agree",
                         *given.gpus, *given.nodes, per_node, *given.nodes * per_node));
    }
  }

  /// Jobs are spread evenly over few NVLink domains: 128 GPUs take 64 of each of two that have 72.
  void spread_over_domains() {
    ClusterSpec& spec = job_.scenario.cluster;
    const std::int64_t domain = spec.gpus_per_node.value, fewest = (spec.gpus - 1) / domain + 1;
    for (std::int64_t domains = fewest; fewest > 1 && domains < 2 * fewest; ++domains) {
      if (spec.gpus % (domains * spec.gpus_per_host.value) != 0) continue;
      const std::int64_t used = spec.gpus / domains;
      if (used == domain) return;
      spec.nics_per_node.value =
          std::max<std::int64_t>(1, spec.nics_per_node.value * used / domain);
      spec.gpus_per_node.value = used;
      assume("cluster.gpus_per_node", std::to_string(used),
             fmt::format("spread evenly over NVLink domains of {} GPUs", domain));
      return;
    }
  }

  void cluster_warnings() {
    const ClusterSettings& given = run_.cluster;
    if (!given.nic_bandwidth || !given.nic_bandwidth_in_bytes) return;
    const double gbytes = given.nic_bandwidth->value() / 1e9;
    if (gbytes < 100) return;
    job_.warnings.push_back(fmt::format(
        "cluster.nic.bandwidth: {:.4g} GB/s a NIC is {:.4g} Gb/s; if {:.4g} Gb/s is meant, write "
        "it so. The answer uses what is written",
        gbytes, 8 * gbytes, gbytes));
  }

  // ---- training ------------------------------------------------------------------------------

  void training() {
    const TrainingSettings& given = run_.training;
    Plan& plan = job_.plan;
    const auto need = [&](const std::optional<std::int64_t>& value, const char* key) {
      if (!value) refuse(key, std::string("is missing (--set ") + key + "=N)");
      return *value;
    };
    plan.sequence_length = need(given.sequence_length, "training.sequence_length");
    plan.micro_batch = need(given.micro_batch, "training.micro_batch");
    plan.global_batch = need(given.global_batch, "training.global_batch");
    plan.precision =
        given_or(given.precision, Precision::kBf16, "training.precision", "bf16", "the default");
    plan.optimizer = given_or(given.optimizer, OptimizerKind::kAdamW, "training.optimizer", "adamw",
                              "the default");
    plan.master_dtype = given.master_dtype.value_or(DType::kFp32);
    plan.grad_dtype = given.grad_dtype.value_or(DType::kFp32);
    plan.moment_dtype = given.moment_dtype.value_or(DType::kFp32);
    if (job_.scenario.model.moe()) {
      plan.moe_imbalance = given_or(given.moe_imbalance, 1.0, "training.moe_imbalance", "1",
                                    "tokens spread evenly over experts");
    }
    if (given.document_length && *given.document_length < plan.sequence_length) {
      throw Unsupported("packed documents (training.document_length below sequence_length)");
    }
  }

  void execution() {
    const ExecutionSettings& given = run_.execution;
    const SoftwareStack& stack = job_.scenario.software;
    Plan& plan = job_.plan;
    const Recompute recompute = stack.recompute.value_or(Recompute::kNone);
    plan.recompute = given_or(given.recompute, recompute, "execution.recompute",
                              std::string(to_text(recompute)), by_software());
    const bool compile = stack.compile.value_or(false);
    plan.compile = given_or(given.compile, compile, "execution.compile", compile ? "true" : "false",
                            by_software());
    plan.reshard = given_or(given.reshard_after_forward, Reshard::kDefault,
                            "execution.reshard_after_forward", "default", by_software());
    plan.attention = given_or(given.attention, stack.attention, "execution.attention",
                              std::string(to_text(stack.attention)), by_software());
    plan.cuda_graphs = given.cuda_graphs.value_or(false);
    plan.offload = given.cpu_offload.value_or(Offload::kNone);
    if (given.tp_overlap && *given.tp_overlap != "none") {
      throw Unsupported("execution.tp_overlap '" + *given.tp_overlap + "'");
    }
  }

  // ---- parallelism ---------------------------------------------------------------------------

  static int narrow(std::int64_t value) { return static_cast<int>(value); }

  void parallelism() {
    const ParallelismSettings& given = run_.parallelism;
    const SoftwareStack& stack = job_.scenario.software;
    Plan& plan = job_.plan;
    degrees();
    plan.mesh_order = given.mesh_order.value_or(kDefaultMeshOrder);
    if (given.placement && *given.placement != "linear") {
      throw Unsupported("parallelism.placement '" + *given.placement + "'");
    }
    const std::int64_t shards = std::int64_t{plan.dp_shard} * plan.cp;
    const std::int64_t ranks = shards * plan.dp_replicate;
    const std::int64_t zero = stack.zero_stage && ranks > 1 ? *stack.zero_stage
                              : shards > 1                  ? 3
                                                            : 0;
    plan.zero_stage = narrow(
        given_or(given.zero_stage, zero, "parallelism.zero_stage", std::to_string(zero),
                 stack.zero_stage ? by_software()
                                  : "3 where parameters are sharded (dp_shard x cp), else 0"));
    const int etp = stack.etp_default == 0 ? plan.tp : stack.etp_default;
    plan.etp = narrow(given.etp.value_or(etp));
    plan.cp_kind = given.cp_kind.value_or(stack.cp_kind);
    if (plan.cp > 1 && !given.cp_kind) {
      assume("parallelism.cp_kind", std::string(to_text(stack.cp_kind)), by_software());
    }
    const bool sp =
        plan.tp > 1 && given.sequence_parallel.value_or(stack.sequence_parallel_with_tp);
    plan.sequence_parallel = sp;
    const bool overlap = sp && stack.async_tp.value_or(false);
    plan.async_tp = run_.execution.async_tp.value_or(overlap);
    if (overlap && !run_.execution.async_tp) assume("execution.async_tp", "true", by_software());
    if (plan.tp > 1 && !given.sequence_parallel) {
      assume("parallelism.sequence_parallel", sp ? "true" : "false", by_software());
    }
    const LossKind loss =
        plan.tp > 1 ? stack.loss_with_tp.value_or(LossKind::kPlain) : LossKind::kPlain;
    plan.loss = run_.execution.loss.value_or(loss);
    if (plan.tp > 1 && !run_.execution.loss) {
      assume("execution.loss", std::string(to_text(loss)), by_software());
    }
    pipeline();
  }

  void degrees() {
    const ParallelismSettings& given = run_.parallelism;
    Plan& plan = job_.plan;
    struct Degree {
      const char* key;
      const std::optional<std::int64_t>* given;
      int* out;
    };
    const std::array<Degree, 5> all{
        {{"parallelism.dp_shard", &given.dp_shard, &plan.dp_shard},
         {"parallelism.dp_replicate", &given.dp_replicate, &plan.dp_replicate},
         {"parallelism.cp", &given.cp, &plan.cp},
         {"parallelism.tp", &given.tp, &plan.tp},
         {"parallelism.pp", &given.pp, &plan.pp}}};
    const Degree* open = nullptr;
    std::int64_t product = 1;
    for (const Degree& d : all) {
      const std::int64_t value = d.given->value_or(1);
      if (value == -1) {
        if (open != nullptr) {
          refuse(d.key,
                 std::string("found -1, but ") + open->key + " is -1 too; one degree may be");
        }
        open = &d;
        continue;
      }
      *d.out = narrow(value);
      product *= value;
      if (product > kMostGpus) {
        refuse(d.key, fmt::format("the degrees multiply to more than {} ranks", kMostGpus));
      }
    }
    const bool open_shard = open == nullptr && !given.dp_shard;
    if (open_shard) open = &all[0];
    if (open != nullptr) solve_open(*open->out, open->key, product, open_shard);
    plan.ep = narrow(given.ep.value_or(1));
    if (plan.ep == -1) refuse("parallelism.ep", "found -1; ep does not multiply, give a number");
  }

  void solve_open(int& out, const char* key, std::int64_t product, bool assumed) {
    const std::int64_t gpus = job_.scenario.cluster.gpus;
    if (gpus % product != 0) {
      refuse(key, fmt::format("the other degrees multiply to {}, which does not divide {} GPUs",
                              product, gpus));
    }
    out = narrow(gpus / product);
    if (assumed) assume(key, std::to_string(out), "what is left of the GPUs");
  }

  void pipeline() {
    const ParallelismSettings& given = run_.parallelism;
    const SoftwareStack& stack = job_.scenario.software;
    Plan& plan = job_.plan;
    plan.schedule = given.schedule.value_or(stack.schedule);
    if (plan.pp > 1 && !given.schedule) {
      assume("parallelism.schedule", std::string(to_text(plan.schedule)), by_software());
    }
    const bool looped = plan.schedule == ScheduleKind::kInterleaved1F1B ||
                        plan.schedule == ScheduleKind::kLoopedBfs;
    const int virtual_stages = plan.pp > 1 && looped ? stack.looped_virtual_stages : 1;
    plan.virtual_stages = narrow(given.virtual_stages.value_or(virtual_stages));
    if (std::int64_t{plan.pp} * plan.virtual_stages > kMostStages) {
      refuse("parallelism.pp",
             fmt::format("found {} x {} virtual stages, at most {} stages are read", plan.pp,
                         plan.virtual_stages, kMostStages));
    }
    if (plan.pp > 1 && looped && !given.virtual_stages) {
      assume("parallelism.virtual_stages", std::to_string(virtual_stages), by_software());
    }
    if (given.stage_layers) {
      const auto& layers = *given.stage_layers;
      if (layers.size() > StageLayers::kMax) {
        refuse("parallelism.stage_layers", fmt::format("at most {} stages", StageLayers::kMax));
      }
      plan.stage_layers.count = narrow(static_cast<std::int64_t>(layers.size()));
      std::copy(layers.begin(), layers.end(), plan.stage_layers.layers.begin());
    } else if (plan.pp > 1 && job_.scenario.model.layers % plan.stages() != 0) {
      assume("parallelism.stage_layers", "uneven",
             run_.software ? "rule of " + stack.name
                           : "the most even split, shorter stages first and last");
    }
  }

  const RunFile& run_;
  const DataPath* data_;  // null: nothing is looked up
  Job job_;
};

}  // namespace

Job resolve_unchecked(const RunFile& run, const DataPath& data) {
  return Resolver(run, &data).run();
}

Job resolve_in(const RunFile& run, const Scenario& scenario) {
  return Resolver(run, nullptr).run_in(scenario);
}

void check_rules(const RunFile& run, const Job& job) {
  const Rule* broken = first_broken(job.scenario, job.plan);
  if (broken == nullptr) return;
  throw InputError(run.place_of(broken->key), std::string(broken->key),
                   broken->problem({job.scenario, job.plan}));
}

Job resolve(const RunFile& run, const DataPath& data) {
  Job job = resolve_unchecked(run, data);
  check_rules(run, job);
  return job;
}

}  // namespace forerun

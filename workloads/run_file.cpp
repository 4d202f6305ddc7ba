#include "workloads/run_file.hpp"

#include "base/text_file.hpp"
#include "base/units.hpp"
#include "base/yaml.hpp"
#include "topology/cluster.hpp"
#include "workloads/foreign_formats.hpp"

namespace forerun {
namespace {

const IntRange kDegree{-1, std::int64_t{1} << 24};
const IntRange kCount{1, std::int64_t{1} << 40};

void note_places(const Node& node, const std::string& path, RunFile& run) {
  for (const Node::Entry& entry : node.entries) {
    const std::string dotted = path.empty() ? entry.key : path + "." + entry.key;
    run.places[dotted] =
        entry.value.kind == Node::Kind::kMapping ? entry.key_mark : entry.value.mark;
    if (entry.value.kind == Node::Kind::kMapping) note_places(entry.value, dotted, run);
  }
}

void read_gpu(const Node& node, ClusterSettings& cluster) {
  if (node.kind == Node::Kind::kScalar) {
    cluster.gpu_name = to_text_value(node, "cluster.gpu");
    return;
  }
  const MappingReader gpu(node, "cluster.gpu", {"name", "memory"});
  cluster.gpu_name = gpu.optional("name", to_text_value);
  cluster.gpu_memory = gpu.optional("memory", to_bytes);
}

void read_nic(const Node& node, ClusterSettings& cluster) {
  const MappingReader nic(node, "cluster.nic", {"count", "bandwidth"});
  cluster.nic_count = nic.optional("count", integer_in({1, 1024}));
  cluster.nic_bandwidth = nic.optional("bandwidth", to_bandwidth);
  if (cluster.nic_bandwidth) {
    cluster.nic_bandwidth_in_bytes = bandwidth_in_bytes(nic.need("bandwidth").scalar);
  }
}

ClusterSettings read_cluster_settings(const Node& node) {
  ClusterSettings cluster;
  if (node.kind == Node::Kind::kScalar) {
    cluster.name = node.scalar;
    return cluster;
  }
  const MappingReader file(
      node, "cluster",
      {"name", "nodes", "gpus", "gpus_per_node", "gpu", "nic", "racks", "oversubscription"});
  cluster.name = file.optional("name", to_text_value);
  cluster.nodes = file.optional("nodes", integer_in(kCount));
  cluster.gpus = file.optional("gpus", integer_in(kCount));
  cluster.gpus_per_node = file.optional("gpus_per_node", integer_in({1, 1024}));
  if (const Node* gpu = file.find("gpu")) read_gpu(*gpu, cluster);
  if (const Node* nic = file.find("nic")) read_nic(*nic, cluster);
  if (const Node* racks = file.find("racks")) {
    const MappingReader reader(*racks, "cluster.racks", {"nodes_per_rack"});
    cluster.nodes_per_rack = reader.optional("nodes_per_rack", integer_in({1, 1 << 20}));
  }
  cluster.oversubscription = file.optional("oversubscription", to_oversubscription);
  return cluster;
}

TrainingSettings read_training(const Node& node) {
  const MappingReader file(
      node, "training",
      {"sequence_length", "micro_batch", "global_batch", "precision", "optimizer", "master_dtype",
       "grad_dtype", "moment_dtype", "document_length", "moe_imbalance"});
  TrainingSettings training;
  training.sequence_length = file.optional("sequence_length", integer_in({1, 1 << 30}));
  training.micro_batch = file.optional("micro_batch", integer_in({1, 1 << 24}));
  training.global_batch = file.optional("global_batch", integer_in({1, std::int64_t{1} << 32}));
  training.moe_imbalance =
      file.optional("moe_imbalance", [](const Node& n, const std::string& key) {
        const double value = to_number(n, key);
        if (!(value >= 1 && value <= 1024)) {
          throw InputError(n.mark.place(), key, "found " + n.scalar + ", must be from 1 to 1024");
        }
        return value;
      });
  training.document_length = file.optional("document_length", integer_in({1, 1 << 30}));
  training.precision = file.optional("precision", to_enum<Precision>);
  training.optimizer = file.optional("optimizer", to_enum<OptimizerKind>);
  training.master_dtype = file.optional("master_dtype", to_enum<DType>);
  training.grad_dtype = file.optional("grad_dtype", to_enum<DType>);
  training.moment_dtype = file.optional("moment_dtype", to_enum<DType>);
  return training;
}

MeshOrder to_mesh_order(const Node& node, const std::string& key) {
  const std::vector<std::string> names = to_texts(node, key);
  MeshOrder order{};
  std::array<bool, kAxes> seen{};
  if (names.size() != kAxes) {
    throw InputError(
        node.mark.place(), key,
        "all five axes are wanted, outermost first: pp, dp_replicate, dp_shard, cp, tp");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto axis = from_text<Axis>(names[i]);
    if (!axis || seen[static_cast<std::size_t>(*axis)]) {
      throw InputError(node.items[i].mark.place(), key,
                       "found '" + names[i] + "', each of pp, dp_replicate, dp_shard, cp, tp once");
    }
    seen[static_cast<std::size_t>(*axis)] = true;
    order[i] = *axis;
  }
  return order;
}

std::int64_t to_degree(const Node& node, const std::string& key) {
  const std::int64_t value = to_integer(node, key, kDegree);
  if (value == 0) {
    throw InputError(node.mark.place(), key, "found 0, must be at least 1, or -1 for the rest");
  }
  return value;
}

ParallelismSettings read_parallelism(const Node& node) {
  const MappingReader file(
      node, "parallelism",
      {"dp_shard", "dp_replicate", "tp", "cp", "pp", "ep", "etp", "zero_stage", "sequence_parallel",
       "cp_kind", "schedule", "virtual_stages", "stage_layers", "mesh_order", "placement"});
  ParallelismSettings p;
  p.dp_shard = file.optional("dp_shard", to_degree);
  p.dp_replicate = file.optional("dp_replicate", to_degree);
  p.tp = file.optional("tp", to_degree);
  p.cp = file.optional("cp", to_degree);
  p.pp = file.optional("pp", to_degree);
  p.ep = file.optional("ep", to_degree);
  p.etp = file.optional("etp", integer_in({1, 1 << 20}));
  p.zero_stage = file.optional("zero_stage", integer_in({0, 3}));
  p.virtual_stages = file.optional("virtual_stages", integer_in({1, 1024}));
  p.sequence_parallel = file.optional("sequence_parallel", to_bool);
  p.cp_kind = file.optional("cp_kind", to_enum<CpKind>);
  p.schedule = file.optional("schedule", to_enum<ScheduleKind>);
  p.mesh_order = file.optional("mesh_order", to_mesh_order);
  p.placement = file.optional("placement", to_text_value);
  p.stage_layers = file.optional("stage_layers", [](const Node& n, const std::string& key) {
    return to_integers(n, key, {1, 32767});
  });
  return p;
}

Reshard to_reshard(const Node& node, const std::string& key) {
  if (node.kind == Node::Kind::kScalar) {
    if (node.scalar == "true" || node.scalar == "1") return Reshard::kAlways;
    if (node.scalar == "false" || node.scalar == "0") return Reshard::kNever;
  }
  return to_enum<Reshard>(node, key);
}

ExecutionSettings read_execution(const Node& node) {
  const MappingReader file(node, "execution",
                           {"recompute", "compile", "cuda_graphs", "reshard_after_forward",
                            "async_tp", "tp_overlap", "attention", "loss", "cpu_offload"});
  ExecutionSettings e;
  e.recompute = file.optional("recompute", to_enum<Recompute>);
  e.compile = file.optional("compile", to_bool);
  e.cuda_graphs = file.optional("cuda_graphs", to_bool);
  e.async_tp = file.optional("async_tp", to_bool);
  e.reshard_after_forward = file.optional("reshard_after_forward", to_reshard);
  e.tp_overlap = file.optional("tp_overlap", to_text_value);
  e.attention = file.optional("attention", to_enum<AttentionKernel>);
  e.loss = file.optional("loss", to_enum<LossKind>);
  e.cpu_offload = file.optional("cpu_offload", to_enum<Offload>);
  return e;
}

MeasuredSettings read_measured(const Node& node) {
  const MappingReader file(node, "measured",
                           {"allreduce_busbw", "allgather_busbw", "reducescatter_busbw"});
  MeasuredSettings m;
  m.allreduce_busbw = file.optional("allreduce_busbw", to_bandwidth);
  m.allgather_busbw = file.optional("allgather_busbw", to_bandwidth);
  m.reducescatter_busbw = file.optional("reducescatter_busbw", to_bandwidth);
  return m;
}

}  // namespace

Place RunFile::place_of(std::string_view dotted) const {
  for (std::string key(dotted); !key.empty();) {
    if (const auto at = places.find(key); at != places.end()) return at->second.place();
    const std::size_t dot = key.rfind('.');
    key = dot == std::string::npos ? "" : key.substr(0, dot);
  }
  return {origin.place().source, 0, 0};
}

RunFile read_run(const Node& root) {
  const MappingReader file(
      root, "",
      {"cluster", "model", "training", "parallelism", "execution", "software", "measured"});
  RunFile run;
  run.origin = root.mark;
  note_places(root, "", run);
  if (const Node* cluster = file.find("cluster")) run.cluster = read_cluster_settings(*cluster);
  if (const Node* model = file.find("model")) {
    if (model->kind == Node::Kind::kScalar) {
      run.model_name = model->scalar;
    } else {
      run.model = read_model(*model, "model", "inline");
    }
  }
  if (const Node* training = file.find("training")) run.training = read_training(*training);
  if (const Node* p = file.find("parallelism")) run.parallelism = read_parallelism(*p);
  if (const Node* e = file.find("execution")) run.execution = read_execution(*e);
  if (const Node* m = file.find("measured")) run.measured = read_measured(*m);
  run.software = file.optional("software", to_text_value);
  return run;
}

void apply_set(Node& root, const std::string& given) {
  const std::string assignment = checked_utf8(given, "--set");
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw InputError({"--set", 0, 0}, assignment, "dotted.key=value is wanted");
  }
  const std::string key = assignment.substr(0, equals);
  Node value = parse_yaml_value(assignment.substr(equals + 1), "--set " + key);
  value.mark.line = value.mark.column = 0;
  set_dotted(root, key, std::move(value));
}

namespace {

RunFile read_with(Node root, const std::vector<std::string>& sets) {
  for (const std::string& set : sets)
    apply_set(root, set);
  return read_run(root);
}

}  // namespace

RunFile load_run(const std::string& path, const std::vector<std::string>& sets) {
  const TextFile file = read_text_file(path);
  refuse_foreign(file);
  return read_with(parse_yaml(file.text, file.name), sets);
}

RunFile read_run_text(const std::string& text, const std::string& name,
                      const std::vector<std::string>& sets) {
  return read_with(parse_yaml(checked_utf8(text, name), name), sets);
}

}  // namespace forerun

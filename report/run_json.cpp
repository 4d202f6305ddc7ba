#include <fmt/format.h>

#include "base/units.hpp"
#include "report/json.hpp"
#include "workloads/stage_split.hpp"

namespace forerun {
namespace {

/// Short where that is exact, so that reading it gives the same value.
std::string exact(Bytes bytes) {
  const std::string text = text_of(bytes);
  return parse_bytes(text) == bytes ? text : fmt::format("{:.17g} B", bytes.value());
}
std::string exact(BytesPerSecond rate) {
  const std::string text = text_of(rate);
  return parse_bandwidth(text) == rate ? text : fmt::format("{:.17g} B/s", rate.value());
}

Json model_keys(const ModelSpec& m) {
  Json out;
  out["layers"] = m.layers;
  out["hidden"] = m.hidden;
  out["ffn_hidden"] = m.ffn_hidden;
  out["gated_mlp"] = m.gated_mlp;
  out["heads"] = m.heads;
  out["kv_heads"] = m.kv_heads;
  out["head_dim"] = m.head_dim;
  out["vocab"] = m.vocab;
  out["tied_embeddings"] = m.tied_embeddings;
  if (m.window > 0) out["window"] = m.window;
  if (m.qk_norm) out["qk_norm"] = true;
  if (m.moe()) {
    out["experts"] = m.experts;
    out["top_k"] = m.top_k;
    out["expert_ffn"] = m.expert_ffn;
    out["shared_experts"] = m.shared_experts;
    if (m.first_k_dense > 0) out["first_k_dense"] = m.first_k_dense;
    if (m.moe_every > 1) out["moe_every"] = m.moe_every;
  }
  return out;
}

Json cluster_keys(const ClusterSpec& c) {
  Json out;
  if (c.name != "inline") out["name"] = c.name;
  out["gpus"] = c.gpus;
  out["gpus_per_node"] = c.gpus_per_node.value;
  out["gpu"]["name"] = c.gpu.name;
  out["gpu"]["memory"] = exact(c.gpu.memory.value);
  out["nic"]["count"] = c.nics_per_node.value;
  out["nic"]["bandwidth"] = exact(c.nic_bandwidth.value);
  out["racks"]["nodes_per_rack"] = c.nodes_per_rack.value;
  out["oversubscription"] = c.oversubscription.value;
  return out;
}

Json parallelism_keys(const Plan& p) {
  Json out;
  out["dp_shard"] = p.dp_shard;
  out["dp_replicate"] = p.dp_replicate;
  out["tp"] = p.tp;
  out["cp"] = p.cp;
  out["pp"] = p.pp;
  out["ep"] = p.ep;
  out["zero_stage"] = p.zero_stage;
  out["sequence_parallel"] = p.sequence_parallel;
  if (p.cp > 1) out["cp_kind"] = to_text(p.cp_kind);
  if (p.pp > 1) {
    out["schedule"] = to_text(p.schedule);
    out["virtual_stages"] = p.virtual_stages;
  }
  for (int s = 0; s < p.stage_layers.count; ++s) {
    out["stage_layers"].push_back(p.stage_layers.layers[static_cast<std::size_t>(s)]);
  }
  for (const Axis axis : p.mesh_order)
    out["mesh_order"].push_back(to_text(axis));
  return out;
}

}  // namespace

Json run_object(const Job& job) {
  const Plan& p = job.plan;
  Json out;
  out["cluster"] = cluster_keys(job.scenario.cluster);
  out["model"] = model_keys(job.scenario.model);
  out["training"] = {
      {"sequence_length", p.sequence_length}, {"micro_batch", p.micro_batch},
      {"global_batch", p.global_batch},       {"precision", to_text(p.precision)},
      {"optimizer", to_text(p.optimizer)},    {"master_dtype", to_text(p.master_dtype)},
      {"grad_dtype", to_text(p.grad_dtype)},  {"moment_dtype", to_text(p.moment_dtype)}};
  if (job.scenario.model.moe()) out["training"]["moe_imbalance"] = p.moe_imbalance;
  out["parallelism"] = parallelism_keys(p);
  if (job.scenario.model.moe()) out["parallelism"]["etp"] = p.etp;
  out["execution"] = {{"recompute", to_text(p.recompute)},           {"compile", p.compile},
                      {"reshard_after_forward", to_text(p.reshard)}, {"async_tp", p.async_tp},
                      {"attention", to_text(p.attention)},           {"loss", to_text(p.loss)}};
  if (p.cuda_graphs) out["execution"]["cuda_graphs"] = true;
  if (p.offload != Offload::kNone) out["execution"]["cpu_offload"] = to_text(p.offload);
  out["software"] = job.scenario.software.name;
  const MeasuredSettings& m = job.scenario.measured;
  if (m.allreduce_busbw) out["measured"]["allreduce_busbw"] = exact(*m.allreduce_busbw);
  if (m.allgather_busbw) out["measured"]["allgather_busbw"] = exact(*m.allgather_busbw);
  if (m.reducescatter_busbw) out["measured"]["reducescatter_busbw"] = exact(*m.reducescatter_busbw);
  return out;
}

}  // namespace forerun

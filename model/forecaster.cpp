#include "model/forecaster.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/stage_split.hpp"

namespace forerun {
namespace {

RateTable rates_of(const Costs& costs, const ForecasterOptions& options) {
  return options.interference ? costs.rates() : RateTable{};
}

double kernel_flops(const std::vector<Kernel>& kernels) {
  double flops = 0;
  for (const Kernel& k : kernels) {
    if (k.family == KernelFamily::kGemm) {
      flops += 2.0 * static_cast<double>(k.gemm.m) * static_cast<double>(k.gemm.n) *
               static_cast<double>(k.gemm.k * k.gemm.groups) * k.repeat;
    } else if (k.family == KernelFamily::kAttentionForward ||
               k.family == KernelFamily::kAttentionBackward) {
      const bool backward = k.family == KernelFamily::kAttentionBackward;
      flops += attention_flops(k.attention, backward) * k.repeat;
    }
  }
  return flops;
}

}  // namespace

std::string unsupported_part(const Scenario& scenario, const Plan& plan, const Profile& profile) {
  const auto named = [](std::string_view what, auto value) {
    return fmt::format("{} {}", what, to_text(value));
  };
  if (scenario.model.moe() && plan.ep > 1 && plan.tp > 1) {
    if (plan.etp != 1 && plan.etp != plan.tp) return "etp other than 1 and tp";
    if (!plan.sequence_parallel) return "experts and tp without sequence parallelism";
  }
  const bool fused = scenario.software.modules.fused_quantise;
  const bool tensorwise = plan.precision == Precision::kFp8Tensorwise;
  if (is_quantised(plan.precision) && !tensorwise && !fused) {
    return named("precision", plan.precision) + " in " + scenario.software.name;
  }
  if (plan.precision == Precision::kFp8Rowwise) return named("precision", plan.precision);
  const GemmCosts& products =
      plan.precision == Precision::kNvfp4 ? profile.gemm_fp4 : profile.gemm_fp8;
  if (is_quantised(plan.precision) && products.peak_fraction == 0) {
    return named("precision", plan.precision) + " on GPU " + scenario.cluster.gpu.name;
  }
  if (plan.optimizer == OptimizerKind::kMuon) return named("optimizer", plan.optimizer);
  if (plan.pp > 1 && plan.reshard == Reshard::kAlways) {
    return "reshard_after_forward always with a pipeline";
  }
  if (plan.pp > 1 && find_schedule(plan.schedule) == nullptr) {
    return named("schedule", plan.schedule);
  }
  if (plan.offload != Offload::kNone) return named("cpu_offload", plan.offload);
  if (plan.cuda_graphs) return "cuda_graphs";
  if (plan.loss == LossKind::kChunked || plan.loss == LossKind::kFused) {
    return named("loss", plan.loss);
  }
  const bool unfused = plan.attention == AttentionKernel::kUnfused;
  if (unfused && plan.cp > 1) return "attention unfused with context parallelism";
  if (!unfused && !profile.attention[static_cast<std::size_t>(plan.attention)].known()) {
    return fmt::format("attention {} on GPU {}", to_text(plan.attention),
                       scenario.cluster.gpu.name);
  }
  return "";
}

Forecaster::Forecaster(const Scenario& scenario, const Profile& profile, ForecasterOptions options)
    : scenario_(scenario),
      profile_(profile),
      options_(options),
      lowering_(scenario_, profile),
      engine_(lowering_.pool(), rates_of(lowering_.costs(), options)),
      memory_(lowering_.pool()) {
  program_.rates = rates_of(lowering_.costs(), options_);
}

const Program& Forecaster::program(const Plan& plan) {
  lowering_.lower(plan, program_);
  return program_;
}

RankMemory Forecaster::rank_memory(const MemoryFold& fold, std::size_t rank) const {
  const auto resident = static_cast<double>(total(program_.resident[rank]));
  const MemoryCosts& costs = scenario_.software.memory;
  RankMemory out;
  out.resident = static_cast<double>(lowering_.between_steps()[rank]);
  out.allocated = resident + static_cast<double>(fold.all.peak);
  double pools = resident;
  for (const MemoryPair& pool : fold.pool)
    pools += static_cast<double>(pool.peak);
  out.reserved = pools * (1 + costs.allocator_slack);
  out.device = out.reserved + costs.context_bytes;
  return out;
}

const Metrics& Forecaster::measure(const Plan& plan, double step_seconds,
                                   const std::vector<MemoryFold>& memory) {
  metrics_.step_seconds = step_seconds;
  const double tokens = static_cast<double>(plan.global_batch * plan.sequence_length) /
                        static_cast<double>(plan.gpus());
  metrics_.tokens_per_second_gpu = tokens / step_seconds;
  metrics_.model_flops_gpu =
      metrics_.tokens_per_second_gpu * flops_per_token(scenario_.model, plan.sequence_length, true);
  const double peak = scenario_.cluster.gpu.peak(compute_dtype(plan.precision)).value();
  metrics_.mfu = metrics_.model_flops_gpu / peak;
  metrics_.fullest_rank = 0;
  for (std::size_t rank = 0; rank < memory.size(); ++rank) {
    const RankMemory m = rank_memory(memory[rank], rank);
    if (rank > 0 && m.reserved <= metrics_.memory.reserved) continue;
    metrics_.memory = m;
    metrics_.fullest_rank = static_cast<int>(rank);
  }
  metrics_.fits = metrics_.memory.device <= scenario_.cluster.gpu.memory.value.value();
  return metrics_;
}

const Metrics& Forecaster::evaluate(const Plan& plan) {
  program(plan);
  engine_.run(program_, timeline_);
  folds_.resize(static_cast<std::size_t>(program_.ranks));
  for (int rank = 0; rank < program_.ranks; ++rank) {
    folds_[static_cast<std::size_t>(rank)] = memory_.fold(program_, rank);
  }
  return measure(plan, timeline_.step_seconds, folds_);
}

Forecast Forecaster::explain(const Job& job) {
  Forecast out;
  out.metrics = evaluate(job.plan);
  engine_.explain(program_, timeline_);
  out.breakdown = timeline_.breakdown;
  const MemoryEngine::Peak peak = memory_.peak(program_, out.metrics.fullest_rank);
  out.live_at_peak = peak.live;
  out.peak_where = peak.where;
  const double tokens = out.metrics.tokens_per_second_gpu;
  const Plan& plan = job.plan;
  out.model_flops_full_gpu = tokens * flops_per_token(scenario_.model, plan.sequence_length, false);
  const std::vector<int> layers = plan.stages() > 1
                                      ? layers_per_stage(scenario_, plan)
                                      : std::vector<int>{static_cast<int>(scenario_.model.layers)};
  double flops = 0;  // of one replica's microbatch, on one rank of each stage
  const std::pair<BlockKind, std::int64_t> blocks[] = {
      {BlockKind::kEmbedding, 1},
      {BlockKind::kDecoder, scenario_.model.dense_layers()},
      {BlockKind::kMoeDecoder, scenario_.model.moe_layers()},
      {BlockKind::kHead, 1}};
  for (const auto& [kind, count] : blocks) {
    if (count == 0) continue;
    const BlockKernels& k = lowering_.kernels(kind, plan);
    flops += static_cast<double>(count) * (kernel_flops(k.forward) + kernel_flops(k.backward));
  }
  out.hardware_flops_gpu = flops * static_cast<double>(plan.microbatches()) /
                           static_cast<double>(plan.pp) / out.metrics.step_seconds;
  for (std::size_t rank = 0; rank < folds_.size(); ++rank) {
    out.ranks.push_back(rank_memory(folds_[rank], rank));
  }
  for (int s = 0; s < plan.stages(); ++s) {
    out.stages.push_back({s, s % plan.pp, layers[static_cast<std::size_t>(s)],
                          timeline_.stage_end[static_cast<std::size_t>(s)]});
  }
  out.warnings = job.warnings;
  out.assumptions = job.assumptions;
  out.job = job;
  out.profile_id = profile_.id;
  out.profile_date = profile_.date;
  out.engine = "analytic";
  return out;
}

}  // namespace forerun

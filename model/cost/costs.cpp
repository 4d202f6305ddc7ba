#include "model/cost/costs.hpp"

#include <algorithm>

namespace forerun {

Costs::Costs(const Scenario& scenario, const Profile& profile)
    : scenario_(&scenario), profile_(&profile), collectives_(profile.collectives) {
  collectives_.transport =
      profile.transports[static_cast<std::size_t>(scenario.cluster.transport.value)];
  const PowerCosts& power = profile.power;
  const double cap = scenario.cluster.gpu.power.value;
  const double pace = 1 / slowest_of(static_cast<double>(scenario.cluster.gpus), power.chip_spread);
  clock_bf16_ = pace * sustained_clock(power, cap, 1);
  clock_fp8_ = pace * sustained_clock(power, cap, power.fp8_activity);
}

namespace {

/// Which kernels a product runs on: quantised operands by the recipe, others by the step's dtype.
struct ProductKernels {
  const GemmCosts* costs;
  FlopsPerSecond peak;
};
ProductKernels product_kernels(DType type, Precision precision, const Profile& profile,
                               const GpuSpec& gpu) {
  if (type == DType::kFp8) {
    if (precision == Precision::kNvfp4) return {&profile.gemm_fp4, gpu.peak_fp4.value};
    if (precision == Precision::kMxfp8) return {&profile.gemm_mxfp8, gpu.peak(DType::kFp8)};
    return {&profile.gemm_fp8, gpu.peak(DType::kFp8)};
  }
  if (!is_quantised(precision)) type = compute_dtype(precision);
  return {&profile.gemm(type), gpu.peak(type)};
}

}  // namespace

double Costs::gemm(const Kernel& kernel, Precision precision) const {
  const GpuSpec& gpu = scenario_->cluster.gpu;
  GemmShape piece = kernel.gemm;
  piece.m = (piece.m + kernel.overlap_chunks - 1) / kernel.overlap_chunks;
  const bool full = piece.dtype == DType::kFp8 && piece.layout != GemmLayout::kForward &&
                    !scenario_->software.fp8_fast_accumulation_backward;
  const ProductKernels kernels = product_kernels(piece.dtype, precision, *profile_, gpu);
  const GemmDevice device{kernels.peak * (clock(precision) * profile_->power.in_step),
                          gpu.hbm_bandwidth.value, static_cast<double>(gpu.sms.value)};
  const double one =
      gemm_time(piece, *kernels.costs, device, full ? Accumulation::kFull : Accumulation::kFast)
          .value();
  const double rate =
      kernel.overlap_chunks > 1 ? profile_->interference.product_beside_copies : 1.0;
  return one * kernel.overlap_chunks * kernel.repeat / rate;
}

/// Scores and probabilities through memory: two products a pass (four backward) over all pairs,
/// masked ones too, and 13 bytes a score forward, 18 backward (scaling, mask, softmax, dropout).
double Costs::unfused_attention(const Kernel& kernel, bool backward, Precision precision) const {
  constexpr double kForwardBytes = 13, kBackwardBytes = 18;
  const AttentionShape& a = kernel.attention;
  Kernel product = kernel;
  product.family = KernelFamily::kGemm;
  product.gemm = {a.q_length, a.kv_length, a.head_dim, DType::kBf16, GemmLayout::kForward};
  // Batched over sequences and heads: one long product of their rows.
  product.gemm.m = a.batch * a.heads * a.q_length;
  const double products = (backward ? 4 : 2) * gemm(product, precision);
  const double bytes = (backward ? kBackwardBytes : kForwardBytes) * static_cast<double>(a.scores);
  return products + memory_bound(KernelFamily::kFused, bytes * kernel.repeat, 1);
}

double Costs::memory_bound(KernelFamily family, double bytes, int launches) const {
  return memory_bound_time(family, bytes, launches, profile_->memory_bound,
                           scenario_->cluster.gpu.hbm_bandwidth.value)
      .value();
}

double Costs::kernel(const Kernel& kernel, AttentionKernel family, Precision precision) const {
  switch (kernel.family) {
    case KernelFamily::kGemm:
      return gemm(kernel, precision);
    case KernelFamily::kAttentionForward:
    case KernelFamily::kAttentionBackward: {
      const bool backward = kernel.family == KernelFamily::kAttentionBackward;
      if (family == AttentionKernel::kUnfused)
        return unfused_attention(kernel, backward, precision);
      const AttentionCosts& costs = profile_->attention[static_cast<std::size_t>(family)];
      const FlopsPerSecond peak = scenario_->cluster.gpu.peak(DType::kFp16) * clock(precision);
      return attention_time(kernel.attention, backward, costs, peak).value() * kernel.repeat;
    }
    default:
      return memory_bound(kernel.family, static_cast<double>(kernel.bytes), kernel.repeat);
  }
}

CollectiveDevice Costs::device(const Span& span) const {
  const ClusterSpec& cluster = scenario_->cluster;
  const Tier tier = span.tier == Tier::kCluster ? Tier::kCluster : Tier::kRack;
  return {cluster.gpu.nvlink.value, cluster.bandwidth_at(tier), cluster.gpus_per_host.value};
}

double Costs::measured_busbw(CollectiveKind kind) const {
  const MeasuredSettings& m = scenario_->measured;
  const auto& given = kind == CollectiveKind::kAllReduce       ? m.allreduce_busbw
                      : kind == CollectiveKind::kAllGather     ? m.allgather_busbw
                      : kind == CollectiveKind::kReduceScatter ? m.reducescatter_busbw
                                                               : std::optional<BytesPerSecond>();
  return given ? given->value() : 0;
}

double Costs::collective(CollectiveKind kind, double bytes, const Span& span) const {
  const double formula = collective_time(kind, bytes, span, collectives_, device(span)).value();
  // What the user saw on his cluster holds for groups that cross nodes, beyond the latency.
  const double busbw = measured_busbw(kind);
  if (busbw <= 0 || span.nodes <= 1) return formula;
  const auto n = static_cast<double>(span.ranks);
  const double rounds = kind == CollectiveKind::kAllReduce ? 2 : 1;
  const double latency = collective_time(kind, 1, span, collectives_, device(span)).value();
  return latency + rounds * bytes * (n - 1) / n / busbw;
}

double Costs::send(double bytes, Tier tier) const {
  const ClusterSpec& cluster = scenario_->cluster;
  return send_time(bytes, tier, collectives_,
                   {cluster.gpu.nvlink.value, cluster.bandwidth_at(std::max(tier, Tier::kRack))})
      .value();
}

double Costs::rate_beside_kernels(const Span& span) const {
  return span.nodes > 1 ? profile_->interference.collective_net
                        : profile_->interference.collective_node;
}

}  // namespace forerun

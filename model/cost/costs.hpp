#pragma once

// The cost formulas bound to one GPU, cluster and profile: what lowering asks for durations.

#include "model/cost/profile.hpp"
#include "workloads/job.hpp"

namespace forerun {

class Costs {
 public:
  Costs(const Scenario& scenario, const Profile& profile);

  /// A kernel that is no collective; seconds of all its launches. The step's precision sets the
  /// clock and the kernels of its products.
  [[nodiscard]] double kernel(const Kernel& kernel, AttentionKernel family,
                              Precision precision) const;
  [[nodiscard]] double memory_bound(KernelFamily family, double bytes, int launches = 1) const;
  [[nodiscard]] double collective(CollectiveKind kind, double bytes, const Span& span) const;
  [[nodiscard]] double send(double bytes, Tier tier) const;
  /// Rate of a collective while kernels run beside it.
  [[nodiscard]] double rate_beside_kernels(const Span& span) const;

  [[nodiscard]] const RateTable& rates() const { return profile_->interference.rates; }
  [[nodiscard]] bool knows(AttentionKernel family) const {
    return profile_->attention[static_cast<std::size_t>(family)].known();
  }
  [[nodiscard]] const Profile& profile() const { return *profile_; }

 private:
  [[nodiscard]] double unfused_attention(const Kernel& kernel, bool backward,
                                         Precision precision) const;
  [[nodiscard]] double gemm(const Kernel& kernel, Precision precision) const;
  [[nodiscard]] double clock(Precision precision) const {
    return is_quantised(precision) ? clock_fp8_ : clock_bf16_;
  }
  [[nodiscard]] CollectiveDevice device(const Span& span) const;
  /// Bus bandwidth that the user measured for a kind of collective, 0 where he did not.
  [[nodiscard]] double measured_busbw(CollectiveKind kind) const;

  const Scenario* scenario_;
  const Profile* profile_;
  CollectiveCosts collectives_;
  double clock_bf16_ = 1, clock_fp8_ = 1;  ///< of a step over the boost clock
};

}  // namespace forerun

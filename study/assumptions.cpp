#include "study/assumptions.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <vector>

#include "workloads/rules.hpp"

namespace forerun {
namespace {

struct Alternative {
  std::string_view key;
  std::string value;
  Plan plan;
};

/// What else a setting could be, for the settings whose alternatives are known.
std::vector<Alternative> alternatives(const std::string& key, const Plan& plan) {
  std::vector<Alternative> out;
  const auto add = [&](std::string value, const std::function<void(Plan&)>& change) {
    Alternative a{key, std::move(value), plan};
    change(a.plan);
    if (!(a.plan == plan)) out.push_back(std::move(a));
  };
  if (key == "execution.compile") {
    add(plan.compile ? "false" : "true", [](Plan& p) { p.compile = !p.compile; });
  } else if (key == "execution.recompute") {
    for (const Recompute r : {Recompute::kNone, Recompute::kSelectiveOp, Recompute::kFull}) {
      add(std::string(to_text(r)), [&](Plan& p) { p.recompute = r; });
    }
  } else if (key == "execution.reshard_after_forward") {
    add("never", [](Plan& p) { p.reshard = Reshard::kNever; });
  } else if (key == "execution.attention") {
    for (const AttentionKernel k : {AttentionKernel::kFlash3, AttentionKernel::kCudnn}) {
      add(std::string(to_text(k)), [&](Plan& p) { p.attention = k; });
    }
  } else if (key == "execution.loss") {
    add("plain", [](Plan& p) { p.loss = LossKind::kPlain; });
  } else if (key == "training.precision") {
    add("fp8-tensorwise", [](Plan& p) { p.precision = Precision::kFp8Tensorwise; });
    add("bf16", [](Plan& p) { p.precision = Precision::kBf16; });
  } else if (key == "parallelism.sequence_parallel") {
    add(plan.sequence_parallel ? "false" : "true",
        [](Plan& p) { p.sequence_parallel = !p.sequence_parallel; });
  }
  return out;
}

}  // namespace

std::string top_assumption(Forecaster& forecaster, const Profile& profile, const Job& job) {
  const double base = forecaster.evaluate(job.plan).step_seconds;
  std::string most;
  double largest = 1e-3;  // less is no difference
  for (const Assumption& assumption : job.assumptions) {
    for (const Alternative& a : alternatives(assumption.key, job.plan)) {
      if (first_broken(job.scenario, a.plan) != nullptr) continue;
      if (!unsupported_part(job.scenario, a.plan, profile).empty()) continue;
      const double change = forecaster.evaluate(a.plan).step_seconds / base - 1;
      if (std::abs(change) <= largest) continue;
      largest = std::abs(change);
      most = fmt::format("{}={}: {} would change step time by {:+.0f}%", assumption.key,
                         assumption.value, a.value, 100 * change);
    }
  }
  return most;
}

}  // namespace forerun

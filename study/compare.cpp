#include "study/compare.hpp"

#include <fmt/format.h>

#include <cmath>

namespace forerun {
namespace {

/// Share of the error (log variance) that two runs have in common: a release or a machine that is
/// slower than its profile slows both. Measured on the pairs of
/// calibration/runs/torchtitan_pairs.csv (docs/methods/uncertainty.md).
constexpr double kSharedError = 0.92;

double seconds_per_million_tokens(const Forecast& f) {
  return 1e6 / f.tokens_s_gpu.value;
}

Interval ratio_interval(const Forecast& a, const Forecast& b) {
  const double ratio = b.tokens_s_gpu.value / a.tokens_s_gpu.value;
  const auto spread = [](const Interval& i) { return std::log(i.high / i.low) / 2; };
  const double each = (spread(a.tokens_s_gpu) + spread(b.tokens_s_gpu)) / 2;
  const double half = each * std::sqrt(2 * (1 - kSharedError));
  return {ratio, ratio * std::exp(-half), ratio * std::exp(half)};
}

std::string verdict(const Interval& ratio, const std::string& a, const std::string& b) {
  if (ratio.low <= 1 && ratio.high >= 1) {
    return fmt::format("too close to call ({:+.1f}%, 90%: {:+.1f}..{:+.1f}%)",
                       100 * (ratio.value - 1), 100 * (ratio.low - 1), 100 * (ratio.high - 1));
  }
  const bool first = ratio.value < 1;
  const double gain = first ? 1 / ratio.value : ratio.value;
  const double low = first ? 1 / ratio.high : ratio.low, high = first ? 1 / ratio.low : ratio.high;
  return fmt::format("{} by {:.1f}% (90%: {:.1f}..{:.1f}%)", first ? a : b, 100 * (gain - 1),
                     100 * (low - 1), 100 * (high - 1));
}

Comparison compare_pair(const Forecast& a, const Forecast& b, const std::string& name_a,
                        const std::string& name_b) {
  Comparison out;
  out.speed_ratio = ratio_interval(a, b);
  out.memory_gib = b.peak_mem.value - a.peak_mem.value;
  out.verdict = verdict(out.speed_ratio, name_a, name_b);
  const double per_a = seconds_per_million_tokens(a) / a.metrics.step_seconds;
  const double per_b = seconds_per_million_tokens(b) / b.metrics.step_seconds;
  for (std::size_t c = 0; c < kCategories; ++c) {
    out.difference[c] = b.breakdown[c] * per_b - a.breakdown[c] * per_a;
  }
  return out;
}

void warn(const std::vector<Job>& jobs, CompareResult& out) {
  for (std::size_t i = 1; i < jobs.size(); ++i) {
    const Plan &a = jobs[0].plan, &b = jobs[i].plan;
    const std::int64_t size_a = count_parameters(jobs[0].scenario.model).total,
                       size_b = count_parameters(jobs[i].scenario.model).total;
    if (size_a != size_b) {
      out.warnings.push_back(
          fmt::format("{} and {} are different models ({:.4g} and {:.4g} parameters)", out.names[0],
                      out.names[i], static_cast<double>(size_a), static_cast<double>(size_b)));
    }
    if (a.sequence_length != b.sequence_length) {
      out.warnings.push_back(fmt::format(
          "{} and {} differ in sequence length ({} and {}): tokens/s are not of equal work",
          out.names[0], out.names[i], a.sequence_length, b.sequence_length));
    }
    if (a.global_batch != b.global_batch) {
      out.warnings.push_back(fmt::format(
          "{} and {} differ in global batch ({} and {} sequences): they train differently",
          out.names[0], out.names[i], a.global_batch, b.global_batch));
    }
    if (a.gpus() != b.gpus()) {
      out.warnings.push_back(fmt::format("{} and {} differ in GPUs ({} and {})", out.names[0],
                                         out.names[i], a.gpus(), b.gpus()));
    }
  }
}

}  // namespace

CompareResult compare(const CompareRequest& request, const StudyContext& context) {
  CompareResult out;
  out.names = request.names;
  for (const Job& job : request.jobs) {
    PredictRequest one;
    one.job = job;
    one.engine = request.engine;
    out.forecasts.push_back(predict(one, context).forecast);
  }
  warn(request.jobs, out);
  for (std::size_t i = 1; i < out.forecasts.size(); ++i) {
    out.comparisons.push_back(
        compare_pair(out.forecasts[0], out.forecasts[i], out.names[0], out.names[i]));
  }
  return out;
}

}  // namespace forerun

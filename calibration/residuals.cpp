#include "calibration/residuals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/mapping_reader.hpp"
#include "base/yaml.hpp"

namespace forerun {
namespace {

constexpr const char* kAll = "all";
constexpr const char* kFile = "calibration/residuals.yaml";

Spread read_spread(const Node& node, const std::string& path) {
  const MappingReader file(node, path, {"low", "median", "high", "runs"});
  Spread spread;
  spread.low = file.required("low", to_number);
  spread.median = file.required("median", to_number);
  spread.high = file.required("high", to_number);
  spread.runs = static_cast<int>(file.required("runs", integer_in({0, 1 << 20})));
  if (spread.low <= 0 || spread.low > spread.median || spread.median > spread.high) {
    throw InputError(file.place(), path, "low, median and high must be above 0 and rise");
  }
  return spread;
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Interval scaled(double value, const Spread& spread) {
  return {value, value * std::min(1.0, spread.low), value * std::max(1.0, spread.high)};
}

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

}  // namespace

Spread spread_of(std::vector<double> ratios) {
  Spread spread;
  spread.runs = static_cast<int>(ratios.size());
  if (ratios.size() < 4) return spread;
  std::sort(ratios.begin(), ratios.end());
  spread.low = quantile(ratios, 0.05);
  spread.median = quantile(ratios, 0.5);
  spread.high = quantile(ratios, 0.95);
  return spread;
}

Residuals Residuals::load(const DataPath& data) {
  Residuals out;
  const auto file = data.find(kFile);
  if (!file) return out;
  const Node root = read_yaml_file(file->string());
  if (root.kind != Node::Kind::kMapping) {
    throw InputError(root.mark.place(), "",
                     "found " + describe(root) + ", a mapping of software stacks is wanted");
  }
  for (const Node::Entry& entry : root.entries) {
    const MappingReader stack(entry.value, entry.key, {"speed", "memory"});
    out.set(entry.key, {read_spread(stack.need("speed"), stack.dotted("speed")),
                        read_spread(stack.need("memory"), stack.dotted("memory"))});
  }
  return out;
}

void Residuals::set(const std::string& software, const StackResiduals& residuals) {
  (software == kAll ? fallback_ : stacks_[software]) = residuals;
}

const StackResiduals& Residuals::of(const std::string& software) const {
  const auto at = stacks_.find(software);
  return at == stacks_.end() ? fallback_ : at->second;
}

std::string Residuals::text() const {
  std::string out =
      "# Measured over predicted on published runs, by software stack: 5% quantile, median and "
      "95%\n"
      "# quantile. Written by `forerun validate RUNS.csv --residuals FILE`.\n";
  const auto add = [&](const std::string& name, const StackResiduals& r) {
    const auto line = [](const char* what, const Spread& s) {
      return fmt::format("  {}: {{low: {:.4f}, median: {:.4f}, high: {:.4f}, runs: {}}}\n", what,
                         s.low, s.median, s.high, s.runs);
    };
    out += name + ":\n" + line("speed", r.speed) + line("memory", r.memory);
  };
  add(kAll, fallback_);
  for (const auto& [name, residuals] : stacks_)
    add(name, residuals);
  return out;
}

void Residuals::apply(Forecast& f) const {
  const StackResiduals& r = of(f.job.scenario.software.name);
  const Metrics& m = f.metrics;
  f.tokens_s_gpu = scaled(m.tokens_per_second_gpu, r.speed);
  f.tflops_gpu = scaled(m.model_flops_gpu / 1e12, r.speed);
  f.mfu = scaled(m.mfu, r.speed);
  f.step_time = {m.step_seconds, m.step_seconds / std::max(1.0, r.speed.high),
                 m.step_seconds / std::min(1.0, r.speed.low)};
  f.peak_mem = scaled(m.memory.reserved / kGiB, r.memory);
  f.allocated = scaled(m.memory.resident / kGiB, r.memory);
  const double capacity = f.job.scenario.cluster.gpu.memory.value.value();
  constexpr double kDeviations = 2 * 1.645;  // between the 5% and the 95% quantile
  const double sigma =
      std::max(0.01, (std::log(r.memory.high) - std::log(r.memory.low)) / kDeviations);
  f.p_fits = normal_cdf((std::log(capacity) - std::log(m.memory.device * r.memory.median)) / sigma);
}

}  // namespace forerun

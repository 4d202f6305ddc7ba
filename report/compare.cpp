#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "report/json.hpp"
#include "report/report.hpp"

namespace forerun {

std::string compare_json(const CompareResult& r) {
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["status"] = "ok";
  out["runs"] = Json::array();
  for (std::size_t i = 0; i < r.forecasts.size(); ++i) {
    Json run = forecast_object(r.forecasts[i]);
    run["name"] = r.names[i];
    out["runs"].push_back(run);
  }
  out["comparisons"] = Json::array();
  for (std::size_t i = 0; i < r.comparisons.size(); ++i) {
    const Comparison& c = r.comparisons[i];
    Json one;
    one["a"] = r.names[0];
    one["b"] = r.names[i + 1];
    put_interval(one, "speed_ratio_b_over_a", c.speed_ratio);
    one["mem_delta_gib"] = finite(c.memory_gib);
    one["verdict"] = c.verdict;
    for (std::size_t k = 0; k < kCategories; ++k) {
      one["difference_s_per_million_tokens_gpu"][std::string(to_text(static_cast<Category>(k)))] =
          finite(c.difference[k]);
    }
    out["comparisons"].push_back(one);
  }
  out["warnings"] = r.warnings;
  return document(out);
}

namespace {

/// The end of a long name, which tells files of one folder apart.
std::string tail_of(const std::string& name) {
  constexpr std::size_t kMost = 17;
  return name.size() <= kMost ? name : "..." + name.substr(name.size() - kMost + 3);
}

void table(const CompareResult& r, std::back_insert_iterator<std::string> out) {
  fmt::format_to(out, "{:<24}", "");
  for (const std::string& name : r.names)
    fmt::format_to(out, "{:>18}", tail_of(name));
  fmt::format_to(out, "\n");
  const auto row = [&](const char* what, int digits, auto value) {
    fmt::format_to(out, "{:<24}", what);
    for (const Forecast& f : r.forecasts)
      fmt::format_to(out, "{:>18.{}f}", value(f), digits);
    fmt::format_to(out, "\n");
  };
  row("tokens/s/GPU", 0, [](const Forecast& f) { return f.tokens_s_gpu.value; });
  row("step time, s", 3, [](const Forecast& f) { return f.step_time.value; });
  row("MFU, %", 1, [](const Forecast& f) { return 100 * f.mfu.value; });
  row("peak reserved, GiB", 1, [](const Forecast& f) { return f.peak_mem.value; });
  fmt::format_to(out, "{:<24}", "fits");
  for (const Forecast& f : r.forecasts) {
    fmt::format_to(out, "{:>18}", f.metrics.fits ? "yes" : "NO");
  }
  fmt::format_to(out, "\n");
}

}  // namespace

std::string compare_text(const CompareResult& r) {
  std::string text;
  const auto out = std::back_inserter(text);
  table(r, out);
  for (std::size_t i = 0; i < r.comparisons.size(); ++i) {
    const Comparison& c = r.comparisons[i];
    fmt::format_to(out, "\n{} against {}: {}\n", r.names[i + 1], r.names[0], c.verdict);
    fmt::format_to(out, "  seconds for a million tokens a GPU, {} less {}\n", r.names[i + 1],
                   r.names[0]);
    double sum = 0;
    for (std::size_t k = 0; k < kCategories; ++k) {
      sum += c.difference[k];
      if (std::abs(c.difference[k]) < 5e-3) continue;
      fmt::format_to(out, "    {:<14}{:>+9.2f}\n", to_text(static_cast<Category>(k)),
                     c.difference[k]);
    }
    fmt::format_to(out, "    {:<14}{:>+9.2f}\n", "sum", sum);
  }
  for (const std::string& warning : r.warnings)
    fmt::format_to(out, "warning: {}\n", warning);
  fmt::format_to(out, "\nMFU counts model FLOPs without recompute, causal attention halved.\n");
  return text;
}

}  // namespace forerun

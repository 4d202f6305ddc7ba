#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/csv.hpp"
#include "report/json.hpp"
#include "report/report.hpp"

namespace forerun {
namespace {

Json point_object(const SweepResult& r, const SweepPoint& p) {
  Json out;
  for (std::size_t i = 0; i < r.keys.size(); ++i)
    out["settings"][r.keys[i]] = p.values[i];
  out["tokens_s_gpu"] = finite(p.metrics.tokens_per_second_gpu);
  out["step_time_s"] = finite(p.metrics.step_seconds);
  out["mfu"] = finite(p.metrics.mfu);
  out["peak_mem_gib"] = finite(p.metrics.memory.reserved / kGiB);
  return out;
}

}  // namespace

std::string sweep_json(const SweepResult& r) {
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["status"] = r.interrupted ? "interrupted" : "ok";
  out["points_total"] = r.points_total;
  out["points_valid"] = r.points_valid;
  out["points_forecast"] = r.points_forecast;
  out["points_rejected"] = Json::object();
  for (const auto& [reason, count] : r.rejected)
    out["points_rejected"][reason] = count;
  out["points_pruned"] = r.points_pruned;
  out["seconds"] = r.seconds;
  out["jobs"] = r.jobs;
  out["best"] = nullptr;
  if (r.best) {
    out["best"] = {{"run", run_object(r.best->job)}, {"forecast", forecast_object(*r.best)}};
  }
  out["top"] = Json::array();
  for (const SweepPoint& p : r.top)
    out["top"].push_back(point_object(r, p));
  out["pareto"] = Json::array();
  for (const SweepPoint& p : r.pareto)
    out["pareto"].push_back(point_object(r, p));
  return document(out);
}

std::string sweep_csv(const SweepResult& r) {
  std::string text;
  const auto out = std::back_inserter(text);
  for (const std::string& key : r.keys)
    fmt::format_to(out, "{},", csv_cell(key));
  fmt::format_to(out, "tokens_s_gpu,step_time_s,mfu,peak_mem_gib\n");
  for (const SweepPoint& p : r.top) {
    for (const std::string& value : p.values)
      fmt::format_to(out, "{},", csv_cell(value));
    fmt::format_to(out, "{:.17g},{:.17g},{:.17g},{:.17g}\n", p.metrics.tokens_per_second_gpu,
                   p.metrics.step_seconds, p.metrics.mfu, p.metrics.memory.reserved / kGiB);
  }
  return text;
}

std::string sweep_jsonl(const SweepResult& r) {
  std::string text;
  for (const SweepPoint& p : r.top) {
    text += point_object(r, p).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return text;
}

std::string sweep_text(const SweepResult& r) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{} points: {} valid, {} forecast in {:.2f} s{}\n", r.points_total,
                 r.points_valid, r.points_forecast, r.seconds,
                 r.interrupted ? " (interrupted; what follows is of the points done)" : "");
  for (const auto& [reason, count] : r.rejected) {
    fmt::format_to(out, "  {:>8} {}\n", count, reason);
  }
  if (r.top.empty()) {
    text += r.points_valid == 0 ? "no point is valid\n" : "no point fits\n";
    return text;
  }
  fmt::format_to(out, "\n");
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < r.keys.size(); ++i) {
    const std::string shown = r.keys[i].substr(r.keys[i].rfind('.') + 1);
    std::size_t width = shown.size();
    for (const SweepPoint& p : r.top)
      width = std::max(width, p.values[i].size());
    widths.push_back(width + 2);
    fmt::format_to(out, "{:<{}}", shown, width + 2);
  }
  fmt::format_to(out, "{:>14}{:>10}{:>8}{:>11}\n", "tokens/s/GPU", "step, s", "MFU, %",
                 "peak, GiB");
  for (const SweepPoint& p : r.top) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      fmt::format_to(out, "{:<{}}", p.values[i], widths[i]);
    }
    fmt::format_to(out, "{:>14.0f}{:>10.3f}{:>8.1f}{:>11.1f}\n", p.metrics.tokens_per_second_gpu,
                   p.metrics.step_seconds, 100 * p.metrics.mfu, p.metrics.memory.reserved / kGiB);
  }
  return text;
}

}  // namespace forerun

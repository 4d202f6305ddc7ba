#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "base/csv.hpp"
#include "report/json.hpp"
#include "report/report.hpp"

namespace forerun {
namespace {

using Out = std::back_insert_iterator<std::string>;

constexpr const char* kHeader =
    "id,status,tokens_s_gpu,tokens_s_gpu_low,tokens_s_gpu_high,step_time_s,step_time_s_low,"
    "step_time_s_high,tflops_gpu,tflops_gpu_low,tflops_gpu_high,mfu,mfu_low,mfu_high,peak_mem_gib,"
    "peak_mem_gib_low,peak_mem_gib_high,allocated_gib,allocated_gib_low,allocated_gib_high,fits,"
    "p_fits,assumptions,top_assumption\n";
constexpr int kNumbers = 18;  // between status and fits

void put(Out out, const Interval& i) {
  fmt::format_to(out, ",{:.10g},{:.10g},{:.10g}", i.value, i.low, i.high);
}

std::string assumptions_text(const Forecast& f) {
  std::string text;
  for (const Assumption& a : f.assumptions) {
    text += (text.empty() ? "" : "; ") + a.key + "=" + a.value;
  }
  return text;
}

}  // namespace

std::string validation_csv(const std::vector<ValidatedRow>& rows) {
  std::string text = kHeader;
  const Out out(text);
  for (const ValidatedRow& row : rows) {
    fmt::format_to(out, "{},{}", csv_cell(row.id), csv_cell(row.status));
    if (!row.forecast) {
      fmt::format_to(out, "{}\n", std::string(kNumbers + 4, ','));
      continue;
    }
    const Forecast& f = *row.forecast;
    for (const Interval& i :
         {f.tokens_s_gpu, f.step_time, f.tflops_gpu, f.mfu, row.peak_mem_gib, f.allocated}) {
      put(out, i);
    }
    fmt::format_to(out, ",{},{:.6g},{},{}\n", f.metrics.fits ? "true" : "false", f.p_fits,
                   csv_cell(assumptions_text(f)), csv_cell(f.top_assumption));
  }
  return text;
}

namespace {

std::string percent(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

void put(Out out, std::string_view what, const ErrorSummary& e) {
  if (e.runs == 0) return;
  fmt::format_to(out,
                 "{:<28} {:>5} runs   median {:>6}   mean {:>6}   90% within {:>6}   bias {:>6}   "
                 "interval covers {:.0f}%\n",
                 what, e.runs, percent(e.median), percent(e.mean), percent(e.p90), percent(e.bias),
                 100 * e.covered);
}

Json error_object(const ErrorSummary& e) {
  if (e.runs == 0) return nullptr;
  return {{"runs", e.runs},
          {"median", finite(e.median)},
          {"mean", finite(e.mean)},
          {"p90", finite(e.p90)},
          {"bias", finite(e.bias)},
          {"covered", finite(e.covered)},
          {"half_width", finite(e.half_width)}};
}

}  // namespace

namespace {

void list_worst(Out out, std::vector<RowError> rows, int most) {
  if (rows.empty() || most == 0) return;
  std::stable_sort(rows.begin(), rows.end(), [](const RowError& a, const RowError& b) {
    return std::abs(a.error()) > std::abs(b.error());
  });
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(most)));
  fmt::format_to(out, "\n{:<44} {:<13} {:>9} {:>9}\n", "largest errors", "", "measured",
                 "predicted");
  for (const RowError& r : rows) {
    fmt::format_to(out, "{:<44} {:<13} {:>9.4g} {:>9.4g} {:>+7.1f}%\n", r.id, r.quantity,
                   r.measured, r.predicted.value, 100 * r.error());
  }
}

}  // namespace

std::string score_text(const Score& s, int worst) {
  std::vector<std::pair<int, std::string>> statuses;
  for (const auto& [status, count] : s.statuses)
    statuses.emplace_back(count, status);
  std::sort(statuses.rbegin(), statuses.rend());
  std::string text = fmt::format("{} rows\n", s.rows);
  const Out out(text);
  for (const auto& [count, status] : statuses)
    fmt::format_to(out, "{:>6} {}\n", count, status);
  text += "\n";
  put(out, "speed", s.speed);
  for (const auto& [software, errors] : s.speed_by_software)
    put(out, "  " + software, errors);
  put(out, "memory", s.memory);
  if (s.pairs) {
    const PairSummary& p = *s.pairs;
    fmt::format_to(
        out,
        "pairs: {} in the measured order, {} not; of ties {} called within 5%, {} apart; "
        "memory {} right, {} wrong; {} unanswered\n",
        p.right, p.wrong, p.ties_close, p.ties_apart, p.memory_right, p.memory_wrong, p.unanswered);
  }
  list_worst(out, s.speeds, worst);
  list_worst(out, s.memories, worst);
  return text;
}

std::string score_json(const Score& s) {
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["status"] = "ok";
  out["rows"] = s.rows;
  out["statuses"] = s.statuses;
  out["speed"] = error_object(s.speed);
  out["memory"] = error_object(s.memory);
  out["speed_by_software"] = Json::object();
  for (const auto& [software, errors] : s.speed_by_software) {
    out["speed_by_software"][software] = error_object(errors);
  }
  if (s.pairs) {
    const PairSummary& p = *s.pairs;
    out["pairs"] = {{"right", p.right},
                    {"wrong", p.wrong},
                    {"ties_close", p.ties_close},
                    {"ties_apart", p.ties_apart},
                    {"memory_right", p.memory_right},
                    {"memory_wrong", p.memory_wrong},
                    {"unanswered", p.unanswered}};
  }
  return document(out);
}

}  // namespace forerun

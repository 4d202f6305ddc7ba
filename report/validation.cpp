#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "base/csv.hpp"
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

std::string validation_summary(const std::vector<ValidatedRow>& rows) {
  std::map<std::string, int> statuses;
  for (const ValidatedRow& row : rows) {
    std::string what = row.status;
    if (what.starts_with("invalid")) what = "invalid";
    ++statuses[what];
  }
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [status, count] : statuses) sorted.emplace_back(count, status);
  std::sort(sorted.rbegin(), sorted.rend());
  std::string text = fmt::format("{} rows\n", rows.size());
  for (const auto& [count, status] : sorted) {
    fmt::format_to(std::back_inserter(text), "{:>6} {}\n", count, status);
  }
  return text;
}

}  // namespace forerun

#include "calibration/score.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/contract.hpp"

namespace forerun {
namespace {

constexpr double kTie = 0.03, kTieCalled = 0.05, kMemoryMatters = 2;  // GiB

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

ErrorSummary summary_of(const std::vector<RowError>& rows) {
  ErrorSummary out;
  if (rows.empty()) return out;
  std::vector<double> signed_errors, errors, widths;
  int covered = 0;
  for (const RowError& r : rows) {
    const Interval& p = r.predicted;
    signed_errors.push_back(r.error());
    errors.push_back(std::abs(r.error()));
    widths.push_back((p.high - p.low) / (2 * p.value));
    covered += p.low <= r.measured && r.measured <= p.high ? 1 : 0;
  }
  std::sort(errors.begin(), errors.end());
  const auto n = static_cast<double>(errors.size());
  out.runs = static_cast<int>(errors.size());
  out.median = median_of(errors);
  out.mean = std::accumulate(errors.begin(), errors.end(), 0.0) / n;
  out.p90 = errors[(9 * errors.size() + 9) / 10 - 1];  // the least that nine in ten are within
  out.bias = median_of(signed_errors);
  out.covered = covered / n;
  out.half_width = median_of(widths);
  return out;
}

std::optional<RowError> speed_error(const CsvTable& runs, const CsvTable::Row& cells,
                                    const ValidatedRow& row) {
  if (const auto tokens = measured_number(runs.cell(cells, "tokens_s_gpu"))) {
    return RowError{row.id, "tokens_s_gpu", row.forecast->tokens_s_gpu, *tokens};
  }
  if (const auto seconds = measured_number(runs.cell(cells, "step_time_s"))) {
    return RowError{row.id, "step_time_s", row.forecast->step_time, *seconds};
  }
  return std::nullopt;
}

std::optional<RowError> memory_error(const CsvTable& runs, const CsvTable::Row& cells,
                                     const ValidatedRow& row) {
  const auto gib = measured_number(runs.cell(cells, "peak_mem_gib"));
  if (!gib || runs.cell(cells, "peak_mem_kind") == "theoretical") return std::nullopt;
  return RowError{row.id, "peak_mem_gib", row.peak_mem_gib, *gib};
}

class PairScore {
 public:
  PairScore(const CsvTable& pairs, const std::vector<ValidatedRow>& rows) : pairs_(pairs) {
    for (const char* column : {"id_a", "id_b", "metric", "speed_ratio_b_over_a"}) {
      if (pairs.has(column)) continue;
      throw InputError({pairs.name(), 1, 0}, column, "the table of pairs has no such column");
    }
    for (const ValidatedRow& row : rows)
      by_id_.emplace(row.id, &row);
  }

  PairSummary run() {
    for (const CsvTable::Row& cells : pairs_.rows())
      add(cells);
    return out_;
  }

 private:
  [[nodiscard]] const ValidatedRow* answered(std::string_view id) const {
    const auto at = by_id_.find(id);
    return at == by_id_.end() || !at->second->forecast ? nullptr : at->second;
  }

  void add(const CsvTable::Row& cells) {
    const auto measured = measured_number(pairs_.cell(cells, "speed_ratio_b_over_a"));
    if (!measured) return;
    const ValidatedRow* a = answered(pairs_.cell(cells, "id_a"));
    const ValidatedRow* b = answered(pairs_.cell(cells, "id_b"));
    if (a == nullptr || b == nullptr) {
      ++out_.unanswered;
      return;
    }
    speed(*measured, ratio(*a->forecast, *b->forecast, pairs_.cell(cells, "metric")));
    memory(pairs_.cell(cells, "mem_delta_gib"), b->peak_mem_gib.value - a->peak_mem_gib.value);
  }

  static double ratio(const Forecast& a, const Forecast& b, std::string_view metric) {
    if (metric == "step_time_s") return a.metrics.step_seconds / b.metrics.step_seconds;
    if (metric == "tflops_gpu") return b.metrics.model_flops_gpu / a.metrics.model_flops_gpu;
    return b.metrics.tokens_per_second_gpu / a.metrics.tokens_per_second_gpu;
  }

  void speed(double measured, double predicted) {
    if (std::abs(measured - 1) < kTie) {
      ++(std::abs(predicted - 1) < kTieCalled ? out_.ties_close : out_.ties_apart);
    } else {
      ++((measured - 1) * (predicted - 1) > 0 ? out_.right : out_.wrong);
    }
  }

  void memory(std::string_view cell, double predicted) {
    double measured = 0;
    std::from_chars(cell.data(), cell.data() + cell.size(), measured);
    if (std::abs(measured) <= kMemoryMatters) return;
    ++(measured * predicted > 0 ? out_.memory_right : out_.memory_wrong);
  }

  const CsvTable& pairs_;
  std::map<std::string_view, const ValidatedRow*> by_id_;
  PairSummary out_;
};

}  // namespace

std::optional<double> measured_number(std::string_view cell) {
  double value = 0;
  const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const bool whole = error == std::errc{} && rest == cell.data() + cell.size();
  return whole && std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

Score score(const CsvTable& runs, const std::vector<ValidatedRow>& rows, const CsvTable* pairs) {
  FR_ASSERT(rows.size() == runs.rows().size());
  Score out;
  out.rows = static_cast<int>(rows.size());
  std::map<std::string, std::vector<RowError>> by_software;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const CsvTable::Row& cells = runs.rows()[i];
    const ValidatedRow& row = rows[i];
    ++out.statuses[row.status.starts_with("invalid") ? "invalid" : row.status];
    if (!row.forecast || runs.cell(cells, "suspect") == "1") continue;
    if (const auto e = speed_error(runs, cells, row)) {
      out.speeds.push_back(*e);
      by_software[row.forecast->job.scenario.software.name].push_back(*e);
    }
    if (const auto e = memory_error(runs, cells, row)) out.memories.push_back(*e);
  }
  out.speed = summary_of(out.speeds);
  out.memory = summary_of(out.memories);
  for (const auto& [software, errors] : by_software) {
    out.speed_by_software[software] = summary_of(errors);
  }
  if (pairs != nullptr) out.pairs = PairScore(*pairs, rows).run();
  return out;
}

}  // namespace forerun

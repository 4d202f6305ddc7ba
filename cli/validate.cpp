#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <regex>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "report/report.hpp"

namespace forerun {
namespace {

/// Where the rows that cannot be read stand, which the answer does not say.
void warn_of_invalid(const std::vector<ValidatedRow>& rows) {
  constexpr int kMost = 10;
  int invalid = 0;
  for (const ValidatedRow& row : rows) {
    if (!row.status.starts_with("invalid") || ++invalid > kMost) continue;
    spdlog::warn("{}: row '{}': {}", row.place.text(), row.id, row.status);
  }
  if (invalid > kMost) spdlog::warn("{} more rows are invalid", invalid - kMost);
}

std::regex pattern_of(const std::string& text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error& error) {
    throw InputError(
        {"--only", 0, 0}, "",
        fmt::format("found '{}', a regular expression is wanted: {}", text, error.what()));
  }
}

}  // namespace

Exit run_validate(const ValidateOptions& o) {
  const StudyContext context(DataPath({o.common.data.begin(), o.common.data.end()}));
  ValidateRequest request;
  request.read.use_measured_network = o.use_measured_network;
  request.predictor = [&](const Job& job) {
    PredictRequest one;
    one.job = job;
    one.engine = o.engine;
    return predict(one, context).forecast;
  };
  CsvTable table = read_csv_file(o.table);
  if (!o.only.empty()) table.keep("id", pattern_of(o.only));
  const std::optional<CsvTable> pairs =
      o.pairs.empty() ? std::nullopt : std::optional(read_csv_file(o.pairs));
  const auto rows = validate(table, context.data, context.residuals, request);
  warn_of_invalid(rows);
  if (!o.residuals.empty()) write_answer(residuals_of(table, rows).text(), o.residuals);
  if (!o.common.out.empty()) write_answer(validation_csv(rows), o.common.out);
  if (o.common.out == "-") return Exit::kAnswered;
  const Score result = score(table, rows, pairs ? &*pairs : nullptr);
  write_answer(o.common.json ? score_json(result) : score_text(result, o.worst), "");
  return Exit::kAnswered;
}

}  // namespace forerun

#pragma once

// Predicting a table of published runs. The caller gives the predictor, so that any engine can be
// validated.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibration/residuals.hpp"
#include "calibration/runs_table.hpp"
#include "model/forecast.hpp"

namespace forerun {

/// One line of the answer.
struct ValidatedRow {
  std::string id;
  std::string
      status;   ///< "ok", "unsupported: why" or "invalid: why"; the same wherever a row stands
  Place place;  ///< of the row in its table
  std::optional<Forecast> forecast;
  Interval peak_mem_gib;  ///< of the row's peak_mem_kind and logged rank
};

using Predictor = std::function<Forecast(const Job&)>;

struct ValidateRequest {
  RunsReadOptions read;
  Predictor predictor;
};

/// Every row gets one line, whatever it holds. Throws InputError only where the table itself cannot
/// be read.
std::vector<ValidatedRow> validate(const CsvTable& table, const DataPath& data,
                                   const Residuals& residuals, const ValidateRequest& request);

/// Measured over predicted by software stack, from answered rows that are not marked suspect.
Residuals residuals_of(const CsvTable& table, const std::vector<ValidatedRow>& rows);

}  // namespace forerun

#pragma once

// The tables of published runs in the repository, forecast.

#include <string>
#include <vector>

#include "calibration/score.hpp"
#include "study/predict.hpp"
#include "tests/support/plans.hpp"

namespace forerun::test {

inline CsvTable published(const char* file) {
  return read_csv_file(std::string(FORERUN_TEST_SOURCE "/calibration/runs/") + file);
}

/// The rows as `forerun validate` answers them, without ranking assumptions.
inline std::vector<ValidatedRow> answered(const CsvTable& runs) {
  const StudyContext context(source_data());
  ValidateRequest request;
  request.predictor = [&](const Job& job) {
    PredictRequest one;
    one.job = job;
    one.rank_assumptions = false;
    return predict(one, context).forecast;
  };
  return validate(runs, context.data, context.residuals, request);
}

}  // namespace forerun::test

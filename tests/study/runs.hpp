#pragma once

// Small runs to study, and the forecast of one.

#include <string>
#include <vector>

#include "base/yaml.hpp"
#include "study/predict.hpp"
#include "tests/support/plans.hpp"

namespace forerun::test {

inline const StudyContext& context() {
  static const StudyContext c(source_data());
  return c;
}

inline const std::string kSixteen =
    "cluster: {name: grand-teton-h100-95gb, gpus: 16}\n"
    "model: llama3-8b\n"
    "training: {sequence_length: 8192, micro_batch: 1, global_batch: 64}\n"
    "software: torchtitan-2024-12\n";

/// The run with more sections.
inline Job sixteen(const std::string& more = "") {
  return job_of(kSixteen + more);
}

inline Forecast forecast_of(const Job& job) {
  PredictRequest request;
  request.job = job;
  request.rank_assumptions = false;
  return predict(request, context()).forecast;
}

}  // namespace forerun::test

#pragma once

// Two or more runs side by side: which is better, by how much, and which terms make the difference.

#include <string>
#include <vector>

#include "study/predict.hpp"

namespace forerun {

struct CompareRequest {
  std::vector<Job> jobs;  ///< at least two; the others are compared with the first
  std::vector<std::string> names;
  EngineKind engine = EngineKind::kAnalytic;
};

struct Comparison {
  Interval speed_ratio;   ///< tokens/s/GPU over the first run's; errors that both share cancel
  double memory_gib = 0;  ///< reserved, less the first run's
  std::string verdict;    ///< "B by 8% (90%: 5..11%)" or "too close to call"
  /// Seconds a million tokens a GPU takes, less the first run's, by term; sums to the difference.
  Breakdown difference{};
};

struct CompareResult {
  std::vector<std::string> names;
  std::vector<Forecast> forecasts;
  std::vector<Comparison> comparisons;  ///< of runs 1, 2, ... with run 0
  std::vector<std::string> warnings;    ///< what makes the runs hard to compare
};

CompareResult compare(const CompareRequest& request, const StudyContext& context);

}  // namespace forerun

#pragma once

// Plans of one scenario to forecasts with the analytic engine; holds what is memoised between them.

#include <memory>
#include <optional>
#include <string>

#include "model/engine/analytic.hpp"
#include "model/engine/memory.hpp"
#include "model/forecast.hpp"
#include "model/lowering.hpp"

namespace forerun {

/// Why a valid plan is not modelled ("schedule zbv"); empty if it is. Validity comes before
/// support.
std::string unsupported_part(const Scenario& scenario, const Plan& plan, const Profile& profile);

struct ForecasterOptions {
  bool interference = true;  ///< kernels and collectives slow each other
};

class Forecaster {
 public:
  Forecaster(const Scenario& scenario, const Profile& profile, ForecasterOptions options = {});

  /// Step time and memory of a valid and supported plan; nothing is allocated once its shape, costs
  /// and stages are known.
  const Metrics& evaluate(const Plan& plan);

  /// The program of a plan, valid until the next call.
  const Program& program(const Plan& plan);

  /// Everything that is printed of one plan. Intervals are left to the caller, who knows residuals.
  Forecast explain(const Job& job);

  /// Of the plan that was evaluated last.
  [[nodiscard]] const Timeline& timeline() const { return timeline_; }
  [[nodiscard]] const std::vector<MemoryFold>& memory() const { return folds_; }  ///< by rank
  /// Metrics from a step time and memory folds, whichever engine made them.
  const Metrics& measure(const Plan& plan, double step_seconds,
                         const std::vector<MemoryFold>& memory);
  [[nodiscard]] const Lowering& lowering() const { return lowering_; }
  [[nodiscard]] const Scenario& scenario() const { return scenario_; }

 private:
  [[nodiscard]] RankMemory rank_memory(const MemoryFold& fold, std::size_t rank) const;

  Scenario scenario_;
  const Profile& profile_;
  ForecasterOptions options_;
  Lowering lowering_;
  AnalyticEngine engine_;
  MemoryEngine memory_;
  Program program_;
  Timeline timeline_;
  Metrics metrics_;
  std::vector<MemoryFold> folds_;
};

}  // namespace forerun

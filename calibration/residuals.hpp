#pragma once

// What past forecasts missed by, per software stack: quantiles of measured over predicted on
// published runs, as `forerun validate --residuals` writes them (calibration/residuals.yaml). They
// turn a forecast's numbers into 90% intervals.

#include <map>
#include <string>
#include <vector>

#include "base/data_path.hpp"
#include "model/forecast.hpp"

namespace forerun {

/// 5% and 95% quantiles and the median of measured over predicted.
struct Spread {
  double low = 0.6;
  double median = 1;
  double high = 1.5;
  int runs = 0;  ///< it was taken from
};

struct StackResiduals {
  Spread speed;   ///< tokens a second
  Spread memory;  ///< reserved
};

class Residuals {
 public:
  /// Reads calibration/residuals.yaml; without it every stack has the default, wide spread.
  static Residuals load(const DataPath& data);

  /// Of a stack, else of all stacks together.
  [[nodiscard]] const StackResiduals& of(const std::string& software) const;
  void set(const std::string& software, const StackResiduals& residuals);
  /// As YAML.
  [[nodiscard]] std::string text() const;

  /// Fills in the intervals and the probability to fit.
  void apply(Forecast& forecast) const;

 private:
  std::map<std::string, StackResiduals> stacks_;
  StackResiduals fallback_;
};

/// Quantiles of measured over predicted; the default spread where there are fewer than 4.
Spread spread_of(std::vector<double> ratios);

}  // namespace forerun

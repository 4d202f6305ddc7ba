#pragma once

// How far predictions of published runs are from what was measured: errors, coverage of the
// intervals, and whether pairs of runs come out in the measured order.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/validate.hpp"

namespace forerun {

/// Relative errors (predicted / measured - 1) in short; absolute but for the bias.
struct ErrorSummary {
  int runs = 0;
  double median = 0, mean = 0, p90 = 0;
  double bias = 0;        ///< median of the signed errors
  double covered = 0;     ///< share of the measurements inside the 90% interval
  double half_width = 0;  ///< median half width of the intervals, relative to the prediction
};

/// Pairs of answered runs that differ in one knob.
struct PairSummary {
  int right = 0, wrong = 0;                ///< order of speeds, where they differ by 3% or more
  int ties_close = 0, ties_apart = 0;      ///< measured within 3%: predicted within 5%, or not
  int memory_right = 0, memory_wrong = 0;  ///< sign of a difference above 2 GiB
  int unanswered = 0;
};

/// One prediction beside its measurement.
struct RowError {
  std::string id;
  std::string_view quantity;  ///< the column that holds the measurement
  Interval predicted;
  double measured = 0;
  [[nodiscard]] double error() const { return predicted.value / measured - 1; }
};

struct Score {
  int rows = 0;
  std::map<std::string, int> statuses;  ///< "invalid: ..." together
  ErrorSummary speed;                   ///< on tokens/s/GPU, else step time
  ErrorSummary memory;
  std::vector<RowError> speeds, memories;  ///< in the order of the table
  std::map<std::string, ErrorSummary> speed_by_software;
  std::optional<PairSummary> pairs;
};

/// `pairs` has the columns id_a, id_b, metric, speed_ratio_b_over_a, mem_delta_gib. Rows marked
/// suspect count for nothing. Throws InputError where the table of pairs lacks a column.
Score score(const CsvTable& runs, const std::vector<ValidatedRow>& rows, const CsvTable* pairs);

/// A number above zero; nothing where the cell holds none.
std::optional<double> measured_number(std::string_view cell);

}  // namespace forerun

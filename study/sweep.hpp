#pragma once

// Every combination of a space of settings: invalid and unfitting points counted by reason, the
// best ones ranked.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/node.hpp"
#include "study/context.hpp"
#include "study/predict.hpp"

namespace forerun {

/// One knob: a dotted key of a run file and its values.
struct SweepAxis {
  std::string key;
  std::vector<Node> values;
};

struct SweepSpace {
  Node run;  ///< the run that is varied
  std::vector<SweepAxis> axes;
  [[nodiscard]] std::int64_t points() const;
};

/// Reads {run: RUN or path, space: {dotted.key: [values]}}. Throws InputError.
SweepSpace read_sweep(const Node& root);

struct SweepPoint {
  std::vector<std::string> values;  ///< of the axes, in order
  Metrics metrics;
  Job job;
};

struct SweepRequest {
  SweepSpace space;
  int top = 10;
  /// Called now and then with points done so far; false stops, and what is done is kept.
  std::function<bool(std::int64_t)> progress;
};

struct SweepResult {
  std::vector<std::string> keys;
  std::int64_t points_total = 0;
  std::int64_t points_valid = 0;
  std::int64_t points_forecast = 0;
  std::int64_t points_pruned = 0;
  std::map<std::string, std::int64_t> rejected;  ///< by reason
  std::vector<SweepPoint> top;                   ///< that fit, by tokens/s/GPU
  std::vector<SweepPoint> pareto;                ///< fastest for their memory, of all that fit
  std::optional<Forecast> best;                  ///< in full
  double seconds = 0;
  int jobs = 1;
  bool interrupted = false;
};

SweepResult sweep(const SweepRequest& request, const StudyContext& context);

}  // namespace forerun

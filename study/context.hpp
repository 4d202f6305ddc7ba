#pragma once

// What every study needs beside its request: where data lies, and what past forecasts missed by.

#include "base/data_path.hpp"
#include "calibration/residuals.hpp"
#include "model/cost/profile.hpp"

namespace forerun {

struct StudyContext {
  DataPath data;
  Residuals residuals;

  explicit StudyContext(DataPath where)
      : data(std::move(where)), residuals(Residuals::load(data)) {}
};

}  // namespace forerun

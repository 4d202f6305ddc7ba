#pragma once

// One forecast.

#include <array>
#include <optional>
#include <string_view>

#include "base/enum_text.hpp"
#include "model/forecast.hpp"
#include "model/forecaster.hpp"
#include "sim/trace.hpp"
#include "study/context.hpp"

namespace forerun {

enum class EngineKind : std::uint8_t { kAnalytic, kDes };
constexpr auto enum_texts(EngineKind) {
  return std::array<std::string_view, 2>{"analytic", "des"};
}
FR_CHECK_ENUM(EngineKind, EngineKind::kDes);

struct PredictRequest {
  Job job;
  EngineKind engine = EngineKind::kAnalytic;
  ForecasterOptions options;
  bool trace = false;            ///< the timeline of a simulated step is wanted
  bool program = false;          ///< the lowered program is wanted
  bool rank_assumptions = true;  ///< find the assumption that moves the answer most
};

struct PredictResult {
  Forecast forecast;
  std::optional<Trace> trace;
  std::string program_json;  ///< where it was wanted
};

/// Throws Unsupported for a valid run that is not modelled.
PredictResult predict(const PredictRequest& request, const StudyContext& context);

}  // namespace forerun

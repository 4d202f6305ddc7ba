#pragma once

// Shared by the JSON renderers; included in .cpp files only.

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "base/contract.hpp"
#include "model/forecast.hpp"

namespace forerun {

using Json = nlohmann::ordered_json;

/// A number; one that is not finite would silently become null.
inline double finite(double value) {
  FR_ASSERT(std::isfinite(value));
  return value;
}

/// A document as text; bytes that are not UTF-8 (in the name of a file) are replaced.
inline std::string document(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Sets key, key_low and key_high.
inline void put_interval(Json& out, const std::string& key, const Interval& interval) {
  out[key] = finite(interval.value);
  out[key + "_low"] = finite(interval.low);
  out[key + "_high"] = finite(interval.high);
}

/// A forecast as an object, without the document's own keys.
Json forecast_object(const Forecast& forecast);
/// The keys of a run file that give this plan again.
Json run_object(const Job& job);

}  // namespace forerun

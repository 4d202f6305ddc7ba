#include "base/error.hpp"

namespace forerun {

std::string Place::text() const {
  std::string out = source;
  if (line > 0) out += ":" + std::to_string(line);
  if (line > 0 && column > 0) out += ":" + std::to_string(column);
  return out;
}

namespace {
std::string message(const Place& place, const std::string& key, const std::string& problem) {
  std::string out = place.text();
  if (!out.empty()) out += ": ";
  if (!key.empty()) out += key + ": ";
  return out + problem;
}
}  // namespace

InputError::InputError(const Place& place, const std::string& key, const std::string& problem)
    : std::runtime_error(message(place, key, problem)),
      place_(place),
      key_(key),
      problem_(problem) {}

}  // namespace forerun

#include "base/catalog_file.hpp"

#include "base/nearest.hpp"
#include "base/yaml.hpp"

namespace forerun {

Node read_catalog_file(const DataPath& data, const std::string& folder, const std::string& kind,
                       const std::string& name, const Place& place, const std::string& key) {
  const bool plain = name.find('/') == std::string::npos && !name.starts_with('.');
  const auto file = plain ? data.find(folder + "/" + name + ".yaml") : std::nullopt;
  if (file) return read_yaml_file(file->string());
  const std::vector<std::string> known = data.names(folder);
  throw InputError(place, key,
                   "unknown " + kind + " '" + name + "', nearest '" + nearest_word(name, known) +
                       "'; known: " + join(known));
}

}  // namespace forerun

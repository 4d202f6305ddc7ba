#pragma once

// One entry of a catalogue folder by name.

#include <string>

#include "base/data_path.hpp"
#include "base/node.hpp"

namespace forerun {

/// Reads `folder`/`name`.yaml. An entry with `extends: OTHER` is that other entry with what it says
/// itself instead. Throws InputError at `place` for an unknown name, saying what kind of thing
/// ("cluster") is wanted and which known name is nearest.
Node read_catalog_file(const DataPath& data, const std::string& folder, const std::string& kind,
                       const std::string& name, const Place& place, const std::string& key);

}  // namespace forerun

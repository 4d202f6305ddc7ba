#pragma once

// YAML and JSON text (JSON is read as YAML flow text) to a Node tree, strictly: duplicate keys,
// merge keys, tabs as indentation, several documents, deep nesting and alias bombs are refused on
// the event stream, before nodes are built.

#include <string>

#include "base/node.hpp"

namespace forerun {

struct YamlLimits {
  int depth = 64;
  int nodes = 100'000;  ///< after aliases are expanded
};

/// Throws InputError with file, line and column. An empty text or one of comments only is refused.
Node parse_yaml(const std::string& text, const std::string& name, const YamlLimits& limits = {});

/// read_text_file, then parse_yaml.
Node read_yaml_file(const std::string& path);

/// A single value as on a command line: `8`, `true`, `[7, 8]`, `80 GiB`.
Node parse_yaml_value(const std::string& text, const std::string& name);

}  // namespace forerun

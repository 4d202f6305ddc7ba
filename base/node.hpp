#pragma once

// A configuration document as a tree whose every value and key knows where it stands. Readers of
// YAML (base/yaml.hpp) make it; the strict reader of mappings (base/mapping_reader.hpp) takes it.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace forerun {

/// A compact place: the source name is shared by all nodes of a file.
struct Mark {
  std::shared_ptr<const std::string> source;
  int line = 0;
  int column = 0;

  [[nodiscard]] Place place() const { return {source ? *source : std::string(), line, column}; }
};

class Node {
 public:
  enum class Kind { kNull, kScalar, kSequence, kMapping };
  struct Entry;

  Kind kind = Kind::kNull;
  Mark mark;
  std::string scalar;          ///< text of a scalar
  bool quoted = false;         ///< a quoted scalar is text, never a number
  std::vector<Node> items;     ///< of a sequence
  std::vector<Entry> entries;  ///< of a mapping, in file order, keys unique

  /// The value of `key` in a mapping, or null.
  [[nodiscard]] const Node* find(std::string_view key) const;
  [[nodiscard]] Node* find(std::string_view key);
};

struct Node::Entry {
  std::string key;
  Mark key_mark;
  Node value;
};

/// "a mapping", "a list", "'text'", "nothing": what was found, for messages.
std::string describe(const Node& node);

/// Sets `dotted` ("training.micro_batch") below `root`, making mappings on the way; where it stood
/// already it is replaced. Throws InputError when a part of the path is no mapping.
void set_dotted(Node& root, std::string_view dotted, Node value);

/// `base` with what `own` says instead: mappings key by key, all else whole.
Node overlaid(Node base, const Node& own);

}  // namespace forerun

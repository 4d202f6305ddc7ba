#pragma once

// Strict reading of one mapping of a document: unknown, missing, misspelt and wrong-typed settings
// fail with place, dotted key, what was found and what is allowed. One reader function per struct
// sits beside the struct; the core never sees a Node.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_text.hpp"
#include "base/nearest.hpp"
#include "base/node.hpp"
#include "base/quantity.hpp"

namespace forerun {

/// Inclusive range of an integer setting.
struct IntRange {
  std::int64_t min = 1;
  std::int64_t max = std::int64_t{1} << 53;
};

/// Conversions of a scalar; each throws InputError with `key`.
std::int64_t to_integer(const Node& node, const std::string& key, IntRange range = {});
double to_number(const Node& node, const std::string& key);
bool to_bool(const Node& node, const std::string& key);
std::string to_text_value(const Node& node, const std::string& key);
Bytes to_bytes(const Node& node, const std::string& key);
BytesPerSecond to_bandwidth(const Node& node, const std::string& key);
Seconds to_seconds(const Node& node, const std::string& key);
FlopsPerSecond to_flop_rate(const Node& node, const std::string& key);
double to_watts(const Node& node, const std::string& key);
double to_hertz(const Node& node, const std::string& key);

template <class E>
E to_enum(const Node& node, const std::string& key) {
  const std::string text = to_text_value(node, key);
  if (const auto value = from_text<E>(text)) return *value;
  std::vector<std::string> words;
  for (const std::string_view word : enum_texts(E{}))
    words.emplace_back(word);
  throw InputError(node.mark.place(), key,
                   "found '" + text + "', allowed: " + join(words) + did_you_mean(text, words));
}

class MappingReader {
 public:
  /// `path` is the dotted path of the mapping ("" at the top), `wants` what it should hold, for the
  /// message when it is no mapping. An unknown key throws at once.
  MappingReader(const Node& node, std::string path, std::vector<std::string> known);

  /// The value of a key; null where it is absent or null.
  [[nodiscard]] const Node* find(std::string_view key) const;
  /// Throws where the key is absent.
  [[nodiscard]] const Node& need(std::string_view key) const;
  [[nodiscard]] std::string dotted(std::string_view key) const;
  [[nodiscard]] Place place() const { return node_->mark.place(); }

  /// Applies `convert(node, dotted key)` where the key is present.
  template <class Convert>
  auto optional(std::string_view key, Convert convert) const
      -> std::optional<decltype(convert(std::declval<const Node&>(), std::string()))> {
    const Node* node = find(key);
    if (node == nullptr) return std::nullopt;
    return convert(*node, dotted(key));
  }

  template <class Convert>
  auto required(std::string_view key, Convert convert) const {
    return convert(need(key), dotted(key));
  }

 private:
  const Node* node_;
  std::string path_;
};

/// Converters with a fixed range, for MappingReader::optional and required.
inline auto integer_in(IntRange range) {
  return [range](const Node& node, const std::string& key) { return to_integer(node, key, range); };
}
std::vector<double> to_numbers(const Node& node, const std::string& key);
std::vector<std::int64_t> to_integers(const Node& node, const std::string& key,
                                      IntRange range = {});
std::vector<std::string> to_texts(const Node& node, const std::string& key);

}  // namespace forerun

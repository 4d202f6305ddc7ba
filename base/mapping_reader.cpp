#include "base/mapping_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "base/units.hpp"

namespace forerun {
namespace {

[[noreturn]] void refuse(const Node& node, const std::string& key, const std::string& problem) {
  throw InputError(node.mark.place(), key, problem);
}

const std::string& plain_scalar(const Node& node, const std::string& key, std::string_view wants) {
  if (node.kind != Node::Kind::kScalar || node.quoted) {
    refuse(node, key, fmt::format("found {}, {} is wanted", describe(node), wants));
  }
  return node.scalar;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Digits with the underscores that TOML and Python allow between them taken out.
std::string without_underscores(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool between =
        i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (text[i] != '_' || !between) out += text[i];
  }
  return out;
}

void refuse_leading_zero(const Node& node, const std::string& key, const std::string& text) {
  const std::size_t first = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  const bool ambiguous = text.size() > first + 1 && text[first] == '0' &&
                         std::all_of(text.begin() + static_cast<long>(first), text.end(), is_digit);
  if (!ambiguous) return;
  const std::string sign = text.starts_with('-') ? "-" : "";
  const std::size_t digit = std::min(text.find_first_not_of("0+-"), text.size() - 1);
  const std::string decimal = text.substr(digit);
  std::int64_t octal = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + digit, end, octal, 8);
  const bool other = error == std::errc{} && rest == end && octal >= 8;
  refuse(node, key,
         fmt::format("ambiguous number {}: write {}{}{}", describe(node), sign, decimal,
                     other ? fmt::format(" or {}{}", sign, octal) : ""));
}

template <class Parse>
auto quantity(const Node& node, const std::string& key, Parse parse) {
  if (node.kind != Node::Kind::kScalar) {
    refuse(node, key, fmt::format("found {}, a number with a unit is wanted", describe(node)));
  }
  try {
    return parse(node.scalar);
  } catch (const UnitError& error) {
    refuse(node, key, error.problem);
  }
}

}  // namespace

std::int64_t to_integer(const Node& node, const std::string& key, IntRange range) {
  const std::string allowed = fmt::format("an integer from {} to {}", range.min, range.max);
  const std::string text = without_underscores(plain_scalar(node, key, allowed));
  refuse_leading_zero(node, key, text);
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) {
    refuse(node, key, fmt::format("found {}, {} is wanted", describe(node), allowed));
  }
  if (value < range.min) {
    refuse(node, key, fmt::format("found {}, must be at least {}", value, range.min));
  }
  if (value > range.max) {
    refuse(node, key, fmt::format("found {}, must be at most {}", value, range.max));
  }
  return value;
}

double to_number(const Node& node, const std::string& key) {
  const std::string text = without_underscores(plain_scalar(node, key, "a number"));
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || !std::isfinite(value)) {
    refuse(node, key, fmt::format("found {}, a finite number is wanted", describe(node)));
  }
  return value;
}

bool to_bool(const Node& node, const std::string& key) {
  const std::string& text = plain_scalar(node, key, "true or false");
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  refuse(node, key, fmt::format("found '{}', true or false is wanted", text));
}

std::string to_text_value(const Node& node, const std::string& key) {
  if (node.kind != Node::Kind::kScalar) {
    refuse(node, key, fmt::format("found {}, a text is wanted", describe(node)));
  }
  return node.scalar;
}

Bytes to_bytes(const Node& node, const std::string& key) {
  return quantity(node, key, parse_bytes);
}
BytesPerSecond to_bandwidth(const Node& node, const std::string& key) {
  return quantity(node, key, parse_bandwidth);
}
Seconds to_seconds(const Node& node, const std::string& key) {
  return quantity(node, key, parse_seconds);
}
FlopsPerSecond to_flop_rate(const Node& node, const std::string& key) {
  return quantity(node, key, parse_flop_rate);
}
double to_watts(const Node& node, const std::string& key) {
  return quantity(node, key, parse_watts);
}
double to_hertz(const Node& node, const std::string& key) {
  return quantity(node, key, parse_hertz);
}

namespace {
template <class Convert>
auto list_of(const Node& node, const std::string& key, Convert convert) {
  if (node.kind != Node::Kind::kSequence) {
    refuse(node, key, fmt::format("found {}, a list is wanted", describe(node)));
  }
  std::vector<decltype(convert(node, key))> values;
  for (const Node& item : node.items)
    values.push_back(convert(item, key));
  return values;
}
}  // namespace

std::vector<double> to_numbers(const Node& node, const std::string& key) {
  return list_of(node, key, to_number);
}
std::vector<std::int64_t> to_integers(const Node& node, const std::string& key, IntRange range) {
  return list_of(node, key, integer_in(range));
}
std::vector<std::string> to_texts(const Node& node, const std::string& key) {
  return list_of(node, key, to_text_value);
}

MappingReader::MappingReader(const Node& node, std::string path, std::vector<std::string> known)
    : node_(&node), path_(std::move(path)) {
  if (node.kind != Node::Kind::kMapping) {
    throw InputError(
        node.mark.place(), path_,
        fmt::format("found {}, a mapping with {} is wanted", describe(node), join(known)));
  }
  for (const Node::Entry& entry : node.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    const std::string hint = did_you_mean(entry.key, known);
    throw InputError(entry.key_mark.place(), dotted(entry.key),
                     "unknown key" + (hint.empty() ? "; known here: " + join(known) : hint));
  }
}

const Node* MappingReader::find(std::string_view key) const {
  const Node* node = node_->find(key);
  return node != nullptr && node->kind != Node::Kind::kNull ? node : nullptr;
}

const Node& MappingReader::need(std::string_view key) const {
  const Node* node = find(key);
  if (node == nullptr) throw InputError(node_->mark.place(), dotted(key), "is missing");
  return *node;
}

std::string MappingReader::dotted(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

}  // namespace forerun

#include "workloads/foreign_formats.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/error.hpp"

namespace forerun {
namespace {

std::string_view trimmed(std::string_view line) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!line.empty() && blank(line.front()))
    line.remove_prefix(1);
  while (!line.empty() && blank(line.back()))
    line.remove_suffix(1);
  return line;
}

/// The first line that is neither blank nor a comment.
std::string_view first_setting(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.empty() && line.front() != '#') return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

/// "[section.name]", which opens a table of TOML.
bool is_toml_table(std::string_view line) {
  const std::size_t close = line.find(']');
  if (!line.starts_with('[') || close == std::string_view::npos || close == 1) return false;
  const std::string_view rest = trimmed(line.substr(close + 1));
  const std::string_view name = line.substr(1, close - 1);
  return (rest.empty() || rest.front() == '#') &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
         });
}

bool holds_key(std::string_view text, std::string_view key) {
  return text.find("\"" + std::string(key) + "\"") != std::string_view::npos;
}

std::string_view format_of(std::string_view text) {
  const std::string_view line = first_setting(text);
  if (is_toml_table(line)) return "a TOML file of torchtitan";
  const std::string_view shebang = text.substr(0, std::min(text.find('\n'), text.size()));
  const bool script = shebang.starts_with("#!") && shebang.find("sh") != std::string_view::npos;
  if (script || line.starts_with("--")) return "a launch script or argument file";
  if (!line.starts_with('{')) return {};
  for (const char* key :
       {"train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization"}) {
    if (holds_key(text, key)) return "a DeepSpeed configuration";
  }
  for (const char* key : {"model_type", "architectures", "hidden_size"}) {
    if (holds_key(text, key)) return "a config.json of Hugging Face";
  }
  return {};
}

}  // namespace

void refuse_foreign(const TextFile& file) {
  const std::string_view format = format_of(file.text);
  if (format.empty()) return;
  throw Unsupported("reading '" + file.name + "', which looks like " + std::string(format) +
                    "; YAML or JSON with the keys of a run file or of a model is read");
}

}  // namespace forerun

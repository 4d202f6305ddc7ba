#include "calibration/software_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <regex>

#include "base/error.hpp"
#include "workloads/software.hpp"

namespace forerun {
namespace {

constexpr std::array<const char*, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                              "jul", "aug", "sep", "oct", "nov", "dec"};

/// The first word that a framework's name holds decides.
constexpr std::array<std::pair<std::string_view, const char*>, 15> kFamilies{{
    {"torchtitan", "torchtitan"},
    {"nanotron", "nanotron"},
    {"foundry", "composer"},
    {"composer", "composer"},
    {"automodel", "torch-fsdp2"},
    {"fsdp2", "torch-fsdp2"},
    {"litgpt", "torch-fsdp2"},
    {"fsdp", "torch-fsdp1"},
    {"accelerate", "torch-fsdp1"},
    {"megatron-deepspeed", "megatron-deepspeed"},
    {"deepspeed", "deepspeed"},
    {"nemo megatron", "megatron"},
    {"nemo", "nemo"},
    {"megatron-bridge", "nemo"},
    {"megatron", "megatron"},
}};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// The catalogue's family of a framework: the part of a stack's name before its date.
std::string family_of(std::string_view framework) {
  const std::string name = lower(framework);
  for (const auto& [word, family] : kFamilies) {
    if (name.find(word) != std::string::npos) return family;
  }
  throw Unsupported("software " + std::string(framework.empty() ? "not stated" : framework));
}

}  // namespace

std::optional<int> month_of(std::string_view text) {
  const std::string low = lower(text);
  std::smatch found;
  static const std::regex iso(R"((20\d\d)-(\d\d))");
  if (std::regex_search(low, found, iso)) {
    return std::stoi(found[1]) * 12 + std::stoi(found[2]) - 1;
  }
  static const std::regex words(
      R"((jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* (20\d\d))");
  if (std::regex_search(low, found, words)) {
    const auto month = std::find(kMonths.begin(), kMonths.end(), found[1].str());
    return std::stoi(found[2]) * 12 + static_cast<int>(month - kMonths.begin());
  }
  static const std::regex container(
      R"((^|[^0-9.])(2\d)\.(0\d|1[0-2])([^0-9]|$))");  // NVIDIA's YY.MM
  if (std::regex_search(low, found, container)) {
    return (2000 + std::stoi(found[2])) * 12 + std::stoi(found[3]) - 1;
  }
  static const std::regex year(R"((^|[^0-9])(20[12]\d)([^0-9]|$))");
  constexpr int kMidYear = 6;
  if (std::regex_search(low, found, year)) return std::stoi(found[2]) * 12 + kMidYear;
  return std::nullopt;
}

StackChoice choose_stack(const DataPath& data, std::string_view framework,
                         std::string_view version) {
  const std::string family = family_of(framework);
  const std::optional<int> wanted = month_of(version);
  StackChoice best;
  int fewest = 1 << 20;
  for (const std::string& name : data.names(kSoftwareFolder)) {
    const std::size_t date = family.size() + 1;
    const bool dated = name.size() > date && std::isdigit(static_cast<unsigned char>(name[date]));
    if (!name.starts_with(family + "-") || !dated) continue;
    const int months = wanted ? std::abs(month_of(name).value_or(0) - *wanted) : 0;
    if (months >= fewest) continue;
    fewest = months;
    best = {name, wanted && months == 0};
  }
  if (best.stack.empty()) throw Unsupported("software " + std::string(framework));
  return best;
}

}  // namespace forerun

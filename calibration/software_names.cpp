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

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// The catalogue's family of a framework: the part of a stack's name before its date.
std::string family_of(std::string_view framework) {
  const std::string name = lower(framework);
  if (name.find("torchtitan") != std::string::npos) return "torchtitan";
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
  return std::nullopt;
}

StackChoice choose_stack(const DataPath& data, std::string_view framework,
                         std::string_view version) {
  const std::string family = family_of(framework);
  const std::optional<int> wanted = month_of(version);
  StackChoice best;
  int fewest = 1 << 20;
  for (const std::string& name : data.names(kSoftwareFolder)) {
    if (!name.starts_with(family + "-")) continue;
    const int months = wanted ? std::abs(month_of(name).value_or(0) - *wanted) : 0;
    if (months >= fewest) continue;
    fewest = months;
    best = {name, wanted && months == 0};
  }
  if (best.stack.empty()) throw Unsupported("software " + std::string(framework));
  return best;
}

}  // namespace forerun

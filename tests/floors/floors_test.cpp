// The folders are floors: a floor includes only from those above it (docs/extending.md).

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kFloors{"base", "topology",    "workloads", "model",
                                       "sim",  "calibration", "study",     "report"};

/// Floors that a folder may include from; the two outermost folders do not know each other.
std::set<std::string> allowed(const std::string& folder) {
  std::set<std::string> floors;
  for (const std::string& floor : kFloors) {
    floors.insert(floor);
    if (floor == folder) break;
  }
  if (folder == "cli" || folder == "python") floors.insert(folder);
  return floors;
}

struct Include {
  std::string file, folder;
};

std::vector<Include> includes_of(const std::string& folder) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*"([^"/]+)/)re");
  std::vector<Include> out;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(FORERUN_TEST_SOURCE) / folder)) {
    const std::string extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".hpp") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (std::regex_search(line, match, pattern)) out.push_back({entry.path(), match[1]});
    }
  }
  return out;
}

}  // namespace

TEST_CASE("every include goes to a floor above") {
  std::vector<std::string> folders = kFloors;
  folders.insert(folders.end(), {"cli", "python"});
  for (const std::string& folder : folders) {
    const std::set<std::string> floors = allowed(folder);
    const std::vector<Include> includes = includes_of(folder);
    CHECK_MESSAGE(!includes.empty(), folder << " holds no source that includes anything");
    for (const Include& include : includes) {
      CHECK_MESSAGE(floors.count(include.folder) == 1,
                    include.file << " includes from " << include.folder);
    }
  }
}

TEST_CASE("JSON, YAML and CLI11 stay out of headers that other floors see") {
  static const std::regex pattern(R"re(#\s*include\s*<(nlohmann|yaml-cpp|CLI)/)re");
  for (const std::string& folder : kFloors) {
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(FORERUN_TEST_SOURCE) / folder)) {
      if (entry.path().extension() != ".hpp" || entry.path().filename() == "json.hpp") continue;
      std::ifstream file(entry.path());
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      CHECK_MESSAGE(!std::regex_search(text, pattern), entry.path().string());
    }
  }
}

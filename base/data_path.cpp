#include "base/data_path.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/error.hpp"

namespace forerun {

namespace fs = std::filesystem;

namespace {
/// Folders above the running program that may hold the data: build/bin/forerun -> build, source.
std::vector<fs::path> beside_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const fs::path folder = program.parent_path();
  return {folder / "data", folder.parent_path() / "share" / "forerun"};
}
}  // namespace

DataPath::DataPath(std::vector<fs::path> own) : roots_(std::move(own)) {
  for (const fs::path& folder : roots_) {
    std::error_code error;
    if (fs::is_directory(folder, error)) continue;
    throw InputError({folder.string(), 0, 0}, "", "is no folder; a folder of data is wanted");
  }
  if (const char* variable = std::getenv("FORERUN_DATA"); variable != nullptr && *variable != 0) {
    roots_.emplace_back(variable);
  }
  for (const fs::path& folder : beside_program())
    roots_.push_back(folder);
  roots_.emplace_back(FORERUN_SOURCE_DIR);
}

std::optional<fs::path> DataPath::find(const std::string& relative) const {
  for (const fs::path& root : roots_) {
    std::error_code error;
    if (fs::is_regular_file(root / relative, error)) return root / relative;
  }
  return std::nullopt;
}

std::vector<std::string> DataPath::names(const std::string& folder) const {
  std::set<std::string> found;
  for (const fs::path& root : roots_) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(root / folder, error)) {
      if (entry.path().extension() == ".yaml") found.insert(entry.path().stem().string());
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace forerun

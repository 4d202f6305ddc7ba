#pragma once

// Where catalogue, profiles and published runs are found, by one function: the user's own folders
// (--data) first, then FORERUN_DATA, then beside the binary or the Python package, then the source
// tree that was built.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace forerun {

class DataPath {
 public:
  /// `own` are the user's folders, searched first. Throws InputError for one that is no folder.
  explicit DataPath(std::vector<std::filesystem::path> own = {});

  /// The first existing file `relative` ("topology/catalog/gpus/h100-sxm-80gb.yaml").
  [[nodiscard]] std::optional<std::filesystem::path> find(const std::string& relative) const;

  /// Stems of the .yaml files in `folder` over all roots, sorted, without repeats.
  [[nodiscard]] std::vector<std::string> names(const std::string& folder) const;

  [[nodiscard]] const std::vector<std::filesystem::path>& roots() const { return roots_; }

 private:
  std::vector<std::filesystem::path> roots_;
};

}  // namespace forerun

#pragma once

// The software stack of a published run from the words of its source.

#include <optional>
#include <string>
#include <string_view>

#include "base/data_path.hpp"

namespace forerun {

struct StackChoice {
  std::string stack;   ///< name in the catalogue
  bool exact = false;  ///< false: the nearest in date
};

/// The stack of a framework at a version ("torchtitan", "torchtitan 9dec370 (2024-12)"): the
/// catalogue's entry of that framework nearest in date. Throws Unsupported for a framework of which
/// the catalogue has no stack.
StackChoice choose_stack(const DataPath& data, std::string_view framework,
                         std::string_view version);

/// Months since year 0 of a date in a version text: "2024-12", "Oct 2024", "(#165, 2024-03)".
std::optional<int> month_of(std::string_view text);

}  // namespace forerun

#pragma once

// The rules that make a plan valid, as one table: what the arithmetic of a layout, the model or the
// software demands. A rule that is broken says what was found, what is allowed and the nearest
// valid value. Validity comes before support: what is valid and not modelled is told by
// model/support.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/job.hpp"

namespace forerun {

struct RuleContext {
  const Scenario& scenario;
  const Plan& plan;
};

struct Rule {
  std::string_view id;   ///< for counting rejects: "heads-by-tp"
  std::string_view key;  ///< the setting to look at
  bool (*holds)(const RuleContext&);
  std::string (*problem)(const RuleContext&);  ///< only called where it does not hold
};

std::span<const Rule> plan_rules();

/// The first rule that a plan breaks; null if it is valid.
const Rule* first_broken(const Scenario& scenario, const Plan& plan);

/// What is legal and worth a word: settings without effect, groups that cross nodes.
std::vector<std::string> plan_warnings(const Scenario& scenario, const Plan& plan);

}  // namespace forerun

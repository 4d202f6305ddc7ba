#pragma once

// From a run as written to a Job: catalogue entries are looked up, open degrees solved, defaults
// taken from the software and noted as assumptions, and the rules of workloads/rules checked.

#include "workloads/job.hpp"

namespace forerun {

/// Throws InputError with place, key, what was found, what is allowed and the nearest valid value.
Job resolve(const RunFile& run, const DataPath& data);

/// The same without the rules, for a caller that counts or reports broken rules itself.
Job resolve_unchecked(const RunFile& run, const DataPath& data);

/// The plan of a run within a scenario that is already known; the run's cluster, model and software
/// are not looked up again. Without the rules.
Job resolve_in(const RunFile& run, const Scenario& scenario);

/// Throws InputError at the place of the first broken rule.
void check_rules(const RunFile& run, const Job& job);

}  // namespace forerun

#pragma once

// Which of the assumptions of a job moves its forecast most.

#include <string>

#include "model/forecaster.hpp"

namespace forerun {

/// Re-evaluates the plan with each assumed setting changed to what else it could be; "" where no
/// assumption changes the step time. For instance
/// "execution.compile=false: true would change step time by -14%".
std::string top_assumption(Forecaster& forecaster, const Profile& profile, const Job& job);

}  // namespace forerun

#pragma once

// Fixed seeded lists of valid and supported plans, as sweeps would enumerate them: what changes the
// kernels of a block changes slowest. Used by the benchmark and by the tests that hold for any
// plan.

#include <cstdint>
#include <string>
#include <vector>

#include "base/data_path.hpp"
#include "model/cost/profile.hpp"
#include "workloads/job.hpp"

namespace forerun::test {

struct PlanList {
  Scenario scenario;
  Profile profile;
  std::vector<Plan> plans;
};

/// Knobs of a sweep; each combination that is valid and supported is a plan.
struct PlanSpace {
  std::string model;
  int gpus = 0;
  std::string cluster = "grand-teton-h100-95gb";
  std::string software = "torchtitan-2024-12";
  std::vector<int> pp{1, 2, 4, 8, 16};
  std::vector<int> ep{1};
};

/// The catalogue as the source tree has it.
DataPath source_data();

/// Resolves a run given as YAML text, without the rules.
Job job_of(const std::string& yaml);

/// Every plan of a space, in sweep order.
PlanList all_plans(const PlanSpace& space);

/// `count` plans of a space, chosen one by one by `seed`, in sweep order.
PlanList some_plans(const PlanSpace& space, std::size_t count, std::uint64_t seed);

/// `count` plans of a space, chosen by `seed` as whole runs of plans that share their blocks, in
/// sweep order: the density of a real sweep.
PlanList sweep_plans(const PlanSpace& space, std::size_t count, std::uint64_t seed);

/// 10,000 plans over three models (8B on 64, 70B on 256, 405B on 512 GPUs), PP up to 16.
std::vector<PlanList> benchmark_plans(std::size_t count = 10000, std::uint64_t seed = 20241211);

/// 120 plans over models, clusters and every way to run a block.
std::vector<PlanList> golden_plans();

/// A short text that tells one plan from another in a failure message.
std::string describe(const Plan& plan);
/// The same with the model and the cluster.
std::string describe(const Scenario& scenario, const Plan& plan);

}  // namespace forerun::test

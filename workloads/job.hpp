#pragma once

// What the user means, resolved: model, cluster, software and plan, with every default that was
// taken. A value; nothing refers back to files.

#include <string>
#include <vector>

#include "topology/cluster.hpp"
#include "workloads/model_spec.hpp"
#include "workloads/plan.hpp"
#include "workloads/run_file.hpp"
#include "workloads/software.hpp"

namespace forerun {

/// A setting that the input left open.
struct Assumption {
  std::string key;  ///< dotted
  std::string value;
  std::string why;  ///< where the value comes from
};

/// What stays fixed while plans vary.
struct Scenario {
  ModelSpec model;
  ClusterSpec cluster;
  SoftwareStack software;
  MeasuredSettings measured;
};

struct Job {
  Scenario scenario;
  Plan plan;
  std::vector<Assumption> assumptions;
  std::vector<std::string> warnings;
};

}  // namespace forerun

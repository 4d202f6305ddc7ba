// One plan on every GPU of the catalogue: it is answered, and the parts stand in a sane order.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "model/forecaster.hpp"
#include "tests/support/plans.hpp"
#include "topology/catalog.hpp"

using namespace forerun;

namespace {

/// Step time of Llama-3-8B on 8 GPUs of a kind, s.
double step(const std::string& gpu, int gpus = 8, const std::string& rest = "") {
  const Job job = test::job_of(
      fmt::format("cluster: {{gpu: {}, gpus: {}}}\nmodel: llama3-8b\n"
                  "training: {{sequence_length: 4096, micro_batch: 1, global_batch: {}}}\n"
                  "execution: {{recompute: full, compile: true}}\n{}",
                  gpu, gpus, gpus, rest));
  const Profile profile = load_profile(test::source_data(), gpu);
  CHECK(unsupported_part(job.scenario, job.plan, profile) == "");
  return Forecaster(job.scenario, profile).evaluate(job.plan).step_seconds;
}

}  // namespace

TEST_CASE("the same plan is answered on every GPU and faster on newer ones") {
  std::map<std::string, double> t;
  for (const std::string& name : test::source_data().names(kGpuFolder)) {
    t[name] = step(name);
    CHECK_MESSAGE(t[name] > 0, name);
  }
  CHECK(t["v100-sxm-32gb"] > t["a100-sxm-80gb"]);
  CHECK(t["a100-sxm-40gb"] > t["a100-sxm-80gb"]);  // HBM
  CHECK(t["a100-sxm-80gb"] > 1.5 * t["h100-sxm-80gb"]);
  CHECK(t["h100-sxm-95gb"] > t["h100-sxm-80gb"]);  // 500 W
  CHECK(t["h100-sxm-80gb"] > t["h200-sxm-141gb"]);
  CHECK(t["h200-sxm-141gb"] > t["b200"]);
  CHECK(t["b200"] > t["gb200"]);
  CHECK(t["gb200"] >= t["gb300"]);
  CHECK(t["a800-sxm-80gb"] >= t["a100-sxm-80gb"]);
  CHECK(t["h800-sxm-80gb"] >= t["h100-sxm-80gb"]);
  CHECK(t["mi300x"] < t["a100-sxm-80gb"]);
  CHECK(t["mi300x"] > t["b200"]);
}

TEST_CASE("a tensor-parallel group of 8 stays inside an NVLink domain of hosts of 4") {
  const std::string tp = "parallelism: {tp: 8}\n";
  const auto tiers = [&](const std::string& gpus_per_node) {
    const Job job = test::job_of("cluster: {gpu: gb200, gpus: 64" + gpus_per_node +
                                 "}\nmodel: llama3-8b\ntraining: {sequence_length: 4096, "
                                 "micro_batch: 1, global_batch: 64}\n" +
                                 tp);
    return span_of(job.plan.mesh(), {Axis::kTp}, job.scenario.cluster).tier;
  };
  CHECK(tiers("") == Tier::kNode);
  CHECK(tiers(", gpus_per_node: 4") == Tier::kNode);  // hosts of 4: the domain stays
  CHECK(tiers(", gpus_per_node: 8") != Tier::kCluster);
  CHECK(step("gb200", 64, tp) > 0);
}

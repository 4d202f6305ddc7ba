// Damaged files of a user's own catalogue: GPUs, clusters, models, software, profiles, residuals.

#include "topology/catalog.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>

#include "base/catalog_file.hpp"
#include "base/yaml.hpp"
#include "calibration/residuals.hpp"
#include "model/cost/profile.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/fuzz/mutator.hpp"
#include "workloads/software.hpp"

namespace forerun::test {
namespace {

constexpr double kMostRate = 1e30;

bool sane(double value) {
  return std::isfinite(value) && value > 0 && value < kMostRate;
}

/// Damages one file of the catalogue and reads it through a data folder of its own.
void damage(const std::string& file, std::uint64_t seed, int times,
            const std::function<void(const DataPath&)>& read) {
  const TemporaryFolder own;
  const std::string original = source_text(file);
  const DataPath data({own.path()});
  Mutator mutated(seed);
  Outcomes outcomes;
  for (int i = 0; i < times; ++i) {
    const std::string text = mutated(original);
    own.write(file, text);
    outcomes.expect_known(text, [&] { read(data); });
  }
  CHECK(outcomes.values > times / 50);
  CHECK(outcomes.refused > times / 5);
}

}  // namespace

TEST_CASE("damaged GPUs are read with sane numbers or refused") {
  damage("topology/catalog/gpus/h100-sxm-80gb.yaml", 51, 800, [](const DataPath& data) {
    const GpuSpec gpu = load_gpu(data, "h100-sxm-80gb", {}, "gpu");
    CHECK(sane(gpu.memory.value.value()));
    CHECK(sane(gpu.hbm_bandwidth.value.value()));
    CHECK(sane(gpu.peak_bf16.value.value()));
    CHECK(sane(gpu.nvlink.value.value()));
    CHECK(sane(gpu.power.value));
    CHECK(sane(gpu.boost_clock.value));
  });
}

TEST_CASE("damaged clusters are read with sane numbers or refused") {
  damage("topology/catalog/clusters/dgx-h100.yaml", 52, 800, [](const DataPath& data) {
    const ClusterSpec cluster = load_cluster(data, "dgx-h100", {}, "cluster");
    CHECK(sane(cluster.bandwidth_at(Tier::kRack).value()));
    CHECK(sane(cluster.bandwidth_at(Tier::kCluster).value()));
    CHECK(cluster.oversubscription.value >= 1);
  });
}

TEST_CASE("damaged models are counted or refused") {
  damage("workloads/catalog/models/llama3-405b.yaml", 53, 1500, [](const DataPath& data) {
    const ModelSpec model = load_model(data, "llama3-405b", {}, "model");
    const ParameterCount count = count_parameters(model);
    CHECK(count.total >= count.active);
    CHECK(count.active > 0);
    CHECK(sane(flops_per_token(model, 8192, true)));
  });
}

TEST_CASE("damaged software stacks are read or refused") {
  damage("workloads/catalog/software/torchtitan-2024-12.yaml", 54, 500, [](const DataPath& data) {
    const SoftwareStack stack = load_software(data, "torchtitan-2024-12", {}, "software");
    CHECK(stack.parameters.size() >= 9);
    CHECK(sane(stack.host.eager_forward));
    CHECK(stack.etp_default >= 0);
  });
}

TEST_CASE("damaged profiles are read or refused") {
  damage("calibration/profiles/hopper.yaml", 55, 250,
         [](const DataPath& data) { (void)load_profile(data, "h100-sxm-80gb"); });
}

TEST_CASE("damaged residuals are read or refused") {
  damage("calibration/residuals.yaml", 56, 1000, [](const DataPath& data) {
    const Residuals residuals = Residuals::load(data);
    const Spread& speed = residuals.of("torchtitan-2024-12").speed;
    CHECK(speed.low <= speed.high);
  });
}

}  // namespace forerun::test

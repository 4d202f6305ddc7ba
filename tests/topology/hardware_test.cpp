// The parts and clusters of the catalogue: peaks in their order, memories under their labels,
// bandwidths of the fabrics as their makers state them.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/plans.hpp"
#include "topology/catalog.hpp"

namespace forerun {
namespace {

GpuSpec part(const std::string& name) {
  return load_gpu(test::source_data(), name, {}, "gpu");
}
ClusterSpec fabric(const std::string& name) {
  return load_cluster(test::source_data(), name, {}, "cluster");
}

double tflops(FlopsPerSecond rate) {
  return rate.value() / 1e12;
}

}  // namespace

TEST_CASE("lower precisions are faster, and tensor cores faster than lanes") {
  for (const std::string& name : test::source_data().names(kGpuFolder)) {
    CAPTURE(name);
    const GpuSpec g = part(name);
    const double half = tflops(g.peak(DType::kFp16));
    CHECK(half >= tflops(g.peak(DType::kBf16)));
    CHECK(half > 4 * tflops(g.peak(DType::kFp32)));
    if (g.peak_tf32.value > FlopsPerSecond()) {
      CHECK(tflops(g.peak_tf32.value) == doctest::Approx(half / 2).epsilon(0.01));
    }
    if (g.peak_fp8.value > FlopsPerSecond()) {
      CHECK(tflops(g.peak_fp8.value) == doctest::Approx(2 * half).epsilon(0.01));
    }
    if (g.peak_fp4.value > FlopsPerSecond()) {
      CHECK(tflops(g.peak_fp4.value) >= 1.99 * tflops(g.peak_fp8.value));
    }
  }
}

TEST_CASE("generations stand in their order") {
  const std::vector<std::string> order{"v100-sxm-32gb", "a100-sxm-40gb",  "a100-sxm-80gb",
                                       "h100-sxm-80gb", "h200-sxm-141gb", "b200",
                                       "gb200"};
  for (std::size_t i = 1; i < order.size(); ++i) {
    CAPTURE(order[i]);
    const GpuSpec before = part(order[i - 1]), now = part(order[i]);
    CHECK(now.peak(DType::kFp16) >= before.peak(DType::kFp16));
    CHECK(now.hbm_bandwidth.value >= before.hbm_bandwidth.value);
    CHECK(now.memory.value > 0.99 * before.memory.value);  // of 80 GB the drivers differ
    CHECK(now.nvlink.value >= before.nvlink.value);
    CHECK(now.power.value >= before.power.value);
  }
}

TEST_CASE("parts for China differ from theirs in NVLink alone") {
  const GpuSpec a100 = part("a100-sxm-80gb"), a800 = part("a800-sxm-80gb");
  const GpuSpec h100 = part("h100-sxm-80gb"), h800 = part("h800-sxm-80gb");
  CHECK(a800.peak(DType::kBf16) == a100.peak(DType::kBf16));
  CHECK(h800.peak(DType::kBf16) == h100.peak(DType::kBf16));
  CHECK(a800.nvlink.value.value() == 200e9);  // 400 GB/s both directions
  CHECK(h800.nvlink.value.value() == 200e9);
}

TEST_CASE("bf16 has no tensor cores on Volta") {
  // 80 SMs x 8 tensor cores x 64 FMA x 2 x 1530 MHz; 80 SMs x 64 lanes x 2 x 1530 MHz.
  const GpuSpec v100 = part("v100-sxm-32gb");
  CHECK(v100.peak(DType::kFp16).value() ==
        doctest::Approx(80.0 * 8 * 64 * 2 * 1530e6).epsilon(0.01));
  CHECK(v100.peak(DType::kBf16).value() == v100.peak(DType::kFp32).value());
}

TEST_CASE("each GPU's usual cluster exists and holds it, and its NIC is the usual one") {
  for (const std::string& name : test::source_data().names(kGpuFolder)) {
    CAPTURE(name);
    const GpuSpec g = part(name);
    const ClusterSpec usual = fabric(g.usual_cluster.value);
    CHECK(usual.gpu.name == name);
    CHECK(usual.nic_per_gpu().value() == g.usual_nic.value.value());
  }
}

TEST_CASE("a GPU's share of the NICs is what the makers state") {
  // Gb/s a GPU: DGX and HGX one port each; p4d 400 Gb/s a node of 8, p5 3,200; DGX-2 800 over 16.
  const std::vector<std::pair<std::string, double>> known{
      {"dgx-a100", 200},    {"selene", 200},      {"aws-p4d", 50},       {"aws-p4de", 50},
      {"dgx-h100", 400},    {"aws-p5", 400},      {"dgx-h200", 400},     {"aws-p5en", 400},
      {"dgx-b200", 400},    {"aws-p6-b200", 400}, {"dgx-b300", 800},     {"gb200-nvl72", 400},
      {"gb300-nvl72", 800}, {"dgx-1", 50},        {"dgx-2", 50},         {"hgx-a800", 200},
      {"hgx-h800", 400},    {"mi300x-roce", 400}, {"dgx-a100-40gb", 200}};
  for (const auto& [name, gbits] : known) {
    CAPTURE(name);
    CHECK(fabric(name).nic_per_gpu().value() == doctest::Approx(gbits * 1e9 / 8));
  }
  CHECK(fabric("aws-p5").transport.value == Transport::kEfa);
  CHECK(fabric("selene").gpu.name == "a100-sxm-80gb");
}

TEST_CASE("an NVL72 rack is one NVLink domain of hosts of 4") {
  for (const char* name : {"gb200-nvl72", "gb300-nvl72"}) {
    const ClusterSpec rack = fabric(name);
    CHECK(rack.gpus_per_node.value == 72);
    CHECK(rack.gpus_per_host.value == 4);
  }
  CHECK(fabric("dgx-b200").gpus_per_host.value == 0);
}

}  // namespace forerun

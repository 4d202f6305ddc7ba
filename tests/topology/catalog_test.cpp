#include "topology/catalog.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/base/expect.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/support/plans.hpp"

namespace forerun {
namespace {

using test::contains;
using test::input_error;

GpuSpec gpu(const std::string& name, const DataPath& data = test::source_data()) {
  return load_gpu(data, name, {"run.yaml", 1, 1}, "cluster.gpu.name");
}
ClusterSpec cluster(const std::string& name, const DataPath& data = test::source_data()) {
  return load_cluster(data, name, {"run.yaml", 1, 1}, "cluster");
}

template <class T>
void check_sourced(const std::string& owner, const Sourced<T>& field) {
  CHECK_MESSAGE(!field.source.empty(), owner);
  CHECK_MESSAGE(field.kind != ValueKind::kUser, owner);
}

std::string gpu_file(const std::string& fp8) {
  const std::string from = ", kind: spec, source: datasheet}\n";
  return "description: a part\nmemory: {value: 40 GiB" + from + "hbm_bandwidth: {value: 1.6 TB/s" +
         from + "sms: {value: 108" + from + "peak:\n  bf16: {value: 312 TFLOP/s" + from + fp8 +
         "  fp32: {value: 19.5 TFLOP/s" + from + "nvlink: {value: 300 GB/s" + from +
         "power: {value: 400 W" + from + "boost_clock: {value: 1410 MHz" + from +
         "usual_nic: {value: 200 Gb/s" + from;
}

}  // namespace

TEST_CASE("the H100 has the numbers of its datasheet") {
  const GpuSpec h100 = gpu("h100-sxm-80gb");
  // Whitepaper: 132 SMs x 4 tensor cores x 512 FMA of bf16 a clock x 2 FLOP x 1830 MHz.
  const double peak = 132.0 * 4 * 512 * 2 * 1830e6;
  CHECK(h100.sms.value == 132);
  CHECK(h100.boost_clock.value == 1830e6);
  CHECK(h100.peak(DType::kBf16).value() == doctest::Approx(peak).epsilon(1e-4));
  CHECK(h100.peak(DType::kFp16).value() == h100.peak(DType::kBf16).value());
  CHECK(h100.peak(DType::kFp8).value() == doctest::Approx(2 * peak).epsilon(1e-4));
  // 128 fp32 lanes an SM.
  CHECK(h100.peak(DType::kFp32).value() == doctest::Approx(132.0 * 128 * 2 * 1830e6).epsilon(0.1));
  CHECK(h100.hbm_bandwidth.value.value() == 3.35e12);
  CHECK(h100.nvlink.value.value() == 450e9);  // 18 links of 25 GB/s in each direction
  CHECK(h100.power.value == 700);
  CHECK(h100.memory.value < Bytes(80 * kGiB));  // less than the label
}

TEST_CASE("the part of the torchtitan tables differs in memory and power") {
  const GpuSpec part = gpu("h100-sxm-95gb");
  // torchtitan's benchmark notes of December 2024: HBM2e of 2.4 TB/s, 500 W, 95.04 GiB in its logs.
  CHECK(part.memory.value.value() == doctest::Approx(95.04 * kGiB));
  CHECK(part.memory.kind == ValueKind::kMeasured);
  CHECK(part.hbm_bandwidth.value.value() == 2.4e12);
  CHECK(part.power.value == 500);
}

TEST_CASE("every value of every GPU and cluster has a source and is no user's") {
  const DataPath data = test::source_data();
  const std::vector<std::string> gpus = data.names(kGpuFolder),
                                 clusters = data.names(kClusterFolder);
  CHECK(gpus.size() >= 13);
  CHECK(clusters.size() >= 20);
  for (const std::string& name : gpus) {
    const GpuSpec g = gpu(name);
    CHECK(g.name == name);
    CHECK_MESSAGE(!g.description.empty(), name);
    check_sourced(name, g.memory);
    check_sourced(name, g.hbm_bandwidth);
    check_sourced(name, g.sms);
    check_sourced(name, g.peak_bf16);
    if (g.peak_fp8.value > FlopsPerSecond()) check_sourced(name, g.peak_fp8);
    if (g.peak_fp4.value > FlopsPerSecond()) check_sourced(name, g.peak_fp4);
    if (g.peak_tf32.value > FlopsPerSecond()) check_sourced(name, g.peak_tf32);
    check_sourced(name, g.peak_fp16);
    check_sourced(name, g.peak_fp32);
    check_sourced(name, g.nvlink);
    check_sourced(name, g.power);
    check_sourced(name, g.boost_clock);
    check_sourced(name, g.usual_nic);
    check_sourced(name, g.usual_cluster);
  }
  for (const std::string& name : clusters) {
    const ClusterSpec c = cluster(name);
    CHECK(c.name == name);
    check_sourced(name, c.gpus_per_node);
    if (c.gpus_per_host.value > 0) check_sourced(name, c.gpus_per_host);
    check_sourced(name, c.nics_per_node);
    check_sourced(name, c.nic_bandwidth);
    check_sourced(name, c.transport);
    check_sourced(name, c.layout);
    check_sourced(name, c.nodes_per_rack);
    check_sourced(name, c.oversubscription);
  }
}

TEST_CASE("a GPU without fp8 has a peak of zero there") {
  const test::TemporaryFolder own;
  own.write("topology/catalog/gpus/a100.yaml", gpu_file(""));
  own.write("topology/catalog/gpus/with.yaml",
            gpu_file("  fp8: {value: 624 TFLOP/s, kind: spec, source: x}\n"));
  const DataPath data({own.path()});
  CHECK(gpu("a100", data).peak(DType::kFp8).value() == 0);
  CHECK(gpu("with", data).peak(DType::kFp8).value() == 624e12);
  CHECK(gpu("a100", data).usual_nic.value.value() == 25e9);
}

TEST_CASE("a catalogue file is read strictly and a fitted value has no place in it") {
  const test::TemporaryFolder own;
  const auto refusal = [&](const std::string& before, const std::string& after) {
    std::string text = gpu_file("");
    text.replace(text.find(before), before.size(), after);
    own.write("topology/catalog/gpus/a100.yaml", text);
    return input_error([&] { gpu("a100", DataPath({own.path()})); });
  };
  CHECK(contains(refusal("nvlink", "nvlinks"), "did you mean 'nvlink'?"));
  CHECK(contains(refusal("40 GiB", "40"), "memory.value: found '40', a unit is wanted"));
  CHECK(contains(refusal("kind: spec", "kind: fitted"), "memory.kind: found 'fitted', allowed"));
  CHECK(contains(refusal(", source: datasheet", ""), "memory.source: is missing"));
  CHECK(contains(refusal("sms: {value: 108", "sms: {value: 0"), "sms.value: found 0"));
}

TEST_CASE("an unknown name is refused at its place with the nearest known one") {
  CHECK(contains(input_error([] { gpu("h100-sxm-80"); }),
                 "run.yaml:1:1: cluster.gpu.name: unknown GPU 'h100-sxm-80', nearest "
                 "'h100-sxm-80gb'; known: a100-sxm-40gb, a100-sxm-80gb"));
  CHECK(contains(input_error([] { cluster("dgx-h10"); }),
                 "cluster: unknown cluster 'dgx-h10', nearest 'dgx-h100'"));
}

}  // namespace forerun

#include "topology/cluster.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/yaml.hpp"
#include "tests/base/expect.hpp"
#include "tests/support/plans.hpp"
#include "topology/catalog.hpp"

namespace forerun {
namespace {

using test::contains;
using test::input_error;

ClusterSpec known(const std::string& name) {
  return load_cluster(test::source_data(), name, {}, "cluster");
}

std::string cluster_file(const std::string& oversubscription) {
  const std::string from = ", kind: spec, source: a sheet}\n";
  return "description: a cluster\ngpu: h100-sxm-80gb\ngpus_per_node: {value: 8" + from +
         "nics_per_node: {value: 4" + from + "nic_bandwidth: {value: 400 Gb/s" + from +
         "transport: {value: efa" + from + "layout: {value: rack" + from +
         "nodes_per_rack: {value: 4" + from + "oversubscription: {value: " + oversubscription +
         from;
}

ClusterSpec read(const std::string& text) {
  std::string gpu;
  return read_cluster(parse_yaml(text, "c.yaml"), "mine", gpu);
}

}  // namespace

TEST_CASE("the cluster of the torchtitan tables has two hosts under a switch") {
  const ClusterSpec c = known("grand-teton-h100-95gb");
  CHECK(c.gpu.name == "h100-sxm-95gb");
  CHECK(c.gpus_per_node.value == 8);
  CHECK(c.nodes_per_rack.value == 2);
  CHECK(c.layout.value == NetworkLayout::kRack);
  CHECK(c.nic_per_gpu().value() == 50e9);  // 400 Gb/s
}

TEST_CASE("the SuperPOD is rail-optimised in units of 32 nodes") {
  const ClusterSpec c = known("dgx-h100");
  CHECK(c.gpu.name == "h100-sxm-80gb");
  CHECK(c.layout.value == NetworkLayout::kRail);
  CHECK(c.transport.value == Transport::kInfiniband);
  CHECK(c.nodes_per_rack.value == 32);
  CHECK(c.nic_per_gpu().value() == 50e9);
  CHECK(c.oversubscription.value == 1);
}

TEST_CASE("a GPU's bandwidth falls from tier to tier") {
  ClusterSpec c = known("dgx-h100");
  CHECK(c.bandwidth_at(Tier::kGpu).value() == 3.35e12);
  CHECK(c.bandwidth_at(Tier::kNode).value() == 450e9);
  CHECK(c.bandwidth_at(Tier::kRack).value() == 50e9);
  CHECK(c.bandwidth_at(Tier::kCluster).value() == 50e9);
  c.oversubscription.value = 4;
  CHECK(c.bandwidth_at(Tier::kRack).value() == 50e9);
  CHECK(c.bandwidth_at(Tier::kCluster).value() == 12.5e9);  // 50 / 4
  c.nics_per_node.value = 4;
  CHECK(c.bandwidth_at(Tier::kRack).value() == 25e9);  // 4 x 50 over 8 GPUs
}

TEST_CASE("a description of one's own names its GPU and shares its NICs") {
  std::string gpu;
  const ClusterSpec c = read_cluster(parse_yaml(cluster_file("1.5"), "c.yaml"), "mine", gpu);
  CHECK(gpu == "h100-sxm-80gb");
  CHECK(c.name == "mine");
  CHECK(c.transport.value == Transport::kEfa);
  CHECK(c.oversubscription.value == 1.5);
  CHECK(c.nic_per_gpu().value() == 25e9);
  CHECK(c.nic_bandwidth.source == "a sheet");
}

TEST_CASE("a fabric cannot have more uplinks than downlinks") {
  for (const std::string value : {"0", "0.5", "-2"}) {
    CHECK(contains(input_error([&] { read(cluster_file(value)); }),
                   "oversubscription.value: found '" + value + "', must be at least 1"));
  }
  CHECK(read(cluster_file("1")).oversubscription.value == 1);
}

}  // namespace forerun

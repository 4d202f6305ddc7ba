#include "workloads/resolve.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/base/expect.hpp"
#include "tests/workloads/runs.hpp"

namespace forerun {
namespace {

using test::assumed;
using test::checked;
using test::contains;
using test::input_error;
using test::resolved;
using test::Sets;
using test::unsupported;

std::string refusal(const Sets& sets) {
  return input_error([&] { resolved(sets); });
}

}  // namespace

TEST_CASE("a run that says little gets defaults and each is noted with its reason") {
  const Job job = checked();
  const Plan& p = job.plan;
  CHECK(p.dp_shard == 64);
  CHECK(assumed(job, "parallelism.dp_shard").value == "64");
  CHECK(p.dp_replicate * p.cp * p.tp * p.pp * p.ep == 1);
  CHECK(p.zero_stage == 3);
  CHECK(assumed(job, "parallelism.zero_stage").value == "3");
  CHECK(p.precision == Precision::kBf16);
  CHECK(assumed(job, "training.precision").value == "bf16");
  CHECK(p.optimizer == OptimizerKind::kAdamW);
  CHECK(assumed(job, "training.optimizer").value == "adamw");
  CHECK_FALSE(p.compile);
  CHECK(assumed(job, "execution.compile").value == "false");
  CHECK(p.recompute == Recompute::kSelectiveOp);  // torchtitan's own default
  CHECK(assumed(job, "execution.recompute").why == "default of torchtitan-2024-12");
  CHECK(assumed(job, "software").value.empty());  // it was given
  CHECK(job.warnings.empty());
}

TEST_CASE("what is given is no assumption") {
  const Job job =
      checked({"parallelism.dp_shard=64", "parallelism.zero_stage=3", "training.precision=bf16",
               "training.optimizer=adam", "execution.compile=true", "execution.recompute=none",
               "execution.reshard_after_forward=never", "execution.attention=flash3"});
  CHECK(job.assumptions.empty());
  CHECK(job.plan.optimizer == OptimizerKind::kAdam);
  CHECK(job.plan.recompute == Recompute::kNone);
  CHECK(job.plan.reshard == Reshard::kNever);
  CHECK(job.plan.attention == AttentionKernel::kFlash3);
}

TEST_CASE("without software no framework's rules are taken and that is noted") {
  const Job job = resolved({"software="});
  CHECK(job.scenario.software.name == "generic");
  CHECK(assumed(job, "software").value == "generic");
  CHECK(job.plan.recompute == Recompute::kNone);
}

TEST_CASE("one degree may be what is left of the GPUs") {
  CHECK(resolved({"parallelism.tp=8"}).plan.dp_shard == 8);
  CHECK(resolved({"parallelism.dp_shard=-1", "parallelism.tp=8"}).plan.dp_shard == 8);
  const Plan pipeline = resolved({"parallelism.dp_shard=4", "parallelism.pp=-1"}).plan;
  CHECK(pipeline.pp == 16);
  const Plan replicas =
      resolved({"parallelism.dp_shard=4", "parallelism.tp=2", "parallelism.dp_replicate=-1"}).plan;
  CHECK(replicas.dp_replicate == 8);
  CHECK(replicas.gpus() == 64);
  CHECK(assumed(resolved({"parallelism.dp_shard=-1"}), "parallelism.dp_shard").value.empty());
}

TEST_CASE("degrees that leave no whole number of the GPUs are refused") {
  CHECK(contains(refusal({"parallelism.tp=5"}), "multiply to 5, which does not divide 64 GPUs"));
  CHECK(contains(refusal({"parallelism.tp=-1", "parallelism.pp=-1"}),
                 "--set parallelism.pp: parallelism.pp: found -1, but parallelism.tp is -1 too"));
  CHECK(contains(refusal({"parallelism.ep=-1"}), "parallelism.ep: found -1; ep does not multiply"));
}

TEST_CASE("degrees and clusters beyond counting are refused and never wrap around") {
  CHECK(
      contains(refusal({"cluster.gpus=1099511627776"}), "cluster.gpus: found 1099511627776 GPUs"));
  CHECK(contains(refusal({"cluster={name: dgx-h100, nodes: 1099511627776}"}), "at most"));
  CHECK(contains(refusal({"parallelism.tp=16777216", "parallelism.dp_shard=16777216"}),
                 "the degrees multiply to more than"));
  // 2^24 x 256 stages are 2^32, which an int takes for 0.
  CHECK(contains(refusal({"cluster.gpus=16777216", "parallelism.pp=16777216",
                          "parallelism.virtual_stages=256"}),
                 "stages"));
}

TEST_CASE("nodes and GPUs must agree where both are given") {
  CHECK(resolved({"cluster={name: dgx-h100, nodes: 8}"}).scenario.cluster.gpus == 64);
  CHECK(resolved({"cluster={name: dgx-h100, gpus: 64}"}).scenario.cluster.nodes == 8);
  CHECK(resolved({"cluster={name: dgx-h100, gpus: 64, nodes: 8}"}).scenario.cluster.gpus == 64);
  CHECK(resolved({"cluster={name: dgx-h100, gpus: 4}"}).scenario.cluster.nodes == 1);
  CHECK(contains(refusal({"cluster={name: dgx-h100, gpus: 63, nodes: 8}"}),
                 "found 63 GPUs and 8 nodes of 8, which are 64"));
  CHECK(contains(refusal({"cluster=dgx-h100"}), "cluster: nodes or gpus is missing"));
}

TEST_CASE("a catalogue's cluster is changed by what the run says of it") {
  const Job job = resolved(
      {"cluster={name: dgx-h100, nodes: 8, gpus_per_node: 4, gpu: {name: h100-sxm-95gb, memory: 90 "
       "GiB}, nic: {count: 2, bandwidth: 100 Gb/s}, racks: {nodes_per_rack: 4}, oversubscription: "
       "2}"});
  const ClusterSpec& c = job.scenario.cluster;
  CHECK(c.gpus == 32);
  CHECK(c.gpu.name == "h100-sxm-95gb");
  CHECK(c.gpu.memory.value.value() == 90 * kGiB);
  CHECK(c.gpu.memory.kind == ValueKind::kUser);
  CHECK(c.nic_per_gpu().value() == 6.25e9);  // 2 x 12.5 GB/s over 4 GPUs
  CHECK(c.nodes_per_rack.value == 4);
  CHECK(c.oversubscription.value == 2);
}

TEST_CASE("a cluster of one's own is that of its GPU's usual neighbours, and that is noted") {
  const Job job = resolved({"cluster={gpu: h100-sxm-80gb, nodes: 8}"});
  const ClusterSpec& c = job.scenario.cluster;
  CHECK(c.gpus_per_node.value == 8);
  CHECK(c.nics_per_node.value == 8);
  CHECK(c.nic_per_gpu().value() == 50e9);
  CHECK(c.layout.value == NetworkLayout::kRail);
  CHECK(assumed(job, "cluster.gpus_per_node").value == "8");
  CHECK(assumed(job, "cluster.nic.bandwidth").value == "50 GB/s");
  CHECK(assumed(job, "cluster.racks.nodes_per_rack").value == "32");
  CHECK_FALSE(assumed(job, "cluster.fabric").value.empty());
}

TEST_CASE("a fabric that is not named is that of the GPU's usual cluster") {
  const Job job = resolved({"cluster={gpu: mi300x, nodes: 8}"});
  CHECK(job.scenario.cluster.transport.value == Transport::kRoce);
  CHECK(assumed(job, "cluster.fabric").value == "rail-optimised roce");
  CHECK(
      resolved({"cluster={gpu: a100-sxm-80gb, nodes: 2}"}).scenario.cluster.nic_per_gpu().value() ==
      25e9);
}

TEST_CASE("jobs spread evenly over NVLink domains of several hosts") {
  const auto cluster = [](const std::string& text) {
    return resolved({"cluster={name: gb200-nvl72, " + text + "}"}).scenario.cluster;
  };
  // 18 hosts of 4 fill a domain of 72; 128 GPUs take 64 of each of two.
  CHECK(cluster("nodes: 18").gpus == 72);
  CHECK(cluster("nodes: 18").nodes == 1);
  CHECK(cluster("gpus: 64").gpus_per_node.value == 72);
  const ClusterSpec two = cluster("gpus: 128");
  CHECK(two.gpus_per_node.value == 64);
  CHECK(two.nodes == 2);
  CHECK(two.nic_per_gpu().value() == 50e9);
  CHECK(cluster("gpus: 144").gpus_per_node.value == 72);
  CHECK(cluster("gpus: 1024").gpus_per_node.value == 64);
  // Hosts named as nodes, with their NICs, mean the same.
  const ClusterSpec hosts =
      cluster("gpus: 128, gpus_per_node: 4, nic: {count: 4, bandwidth: 400 Gb/s}");
  CHECK(hosts.gpus_per_node.value == 64);
  CHECK(hosts.nic_per_gpu().value() == 50e9);
  // Another number is taken as it stands.
  CHECK(cluster("gpus: 128, gpus_per_node: 8").gpus_per_node.value == 8);
}

TEST_CASE("a NIC written in bytes that is rarely meant so is warned of") {
  const auto warnings = [](const std::string& bandwidth) {
    return resolved({"cluster.nic.bandwidth=" + bandwidth}).warnings;
  };
  REQUIRE(warnings("400 GB/s").size() == 1);
  CHECK(contains(warnings("400 GB/s")[0], "400 GB/s a NIC is 3200 Gb/s; if 400 Gb/s is meant"));
  CHECK(warnings("400 Gb/s").empty());
  CHECK(warnings("50 GB/s").empty());
}

TEST_CASE("shards decide the stage of ZeRO") {
  const auto stage = [](const Sets& sets) { return resolved(sets).plan.zero_stage; };
  CHECK(stage({}) == 3);
  CHECK(stage({"parallelism.dp_replicate=64", "parallelism.dp_shard=1"}) == 0);
  CHECK(stage({"cluster.gpus=8", "parallelism.tp=8"}) == 0);
  CHECK(stage({"cluster.gpus=8", "parallelism.cp=8"}) == 3);  // parameters are cut over cp too
  CHECK(stage({"parallelism.zero_stage=2"}) == 2);
}

TEST_CASE(
    "tensor parallelism brings sequence and loss parallelism with it, as the stack has them") {
  const Job job = resolved({"parallelism.tp=8"});
  CHECK(job.plan.sequence_parallel);
  CHECK(job.plan.loss == LossKind::kParallel);
  CHECK(assumed(job, "parallelism.sequence_parallel").value == "true");
  CHECK(assumed(job, "execution.loss").value == "parallel");
  CHECK_FALSE(resolved().plan.sequence_parallel);
  CHECK(resolved().plan.loss == LossKind::kPlain);
  CHECK_FALSE(
      resolved({"parallelism.tp=8", "parallelism.sequence_parallel=false"}).plan.sequence_parallel);
  CHECK(resolved({"parallelism.tp=8", "execution.loss=plain"}).plan.loss == LossKind::kPlain);
}

TEST_CASE("a pipeline brings its schedule and stages with it") {
  const Job plain = resolved({"parallelism.pp=4"});
  CHECK(plain.plan.schedule == ScheduleKind::k1F1B);
  CHECK(plain.plan.virtual_stages == 1);
  CHECK(assumed(plain, "parallelism.schedule").value == "1f1b");
  const Job looped = resolved({"parallelism.pp=4", "parallelism.schedule=interleaved-1f1b"});
  CHECK(looped.plan.virtual_stages == 2);
  CHECK(assumed(looped, "parallelism.virtual_stages").value == "2");
  const Job uneven = resolved({"parallelism.pp=3", "cluster.gpus=24"});  // 32 layers
  CHECK(assumed(uneven, "parallelism.stage_layers").value == "uneven");
  const Job single = resolved({"parallelism.virtual_stages=4", "parallelism.schedule=gpipe"});
  CHECK(single.plan.virtual_stages == 1);  // without effect
  CHECK(single.plan.schedule == ScheduleKind::k1F1B);
}

TEST_CASE("what is missing is named with the option that gives it") {
  CHECK(contains(refusal({"model="}), "model: is missing"));
  CHECK(contains(refusal({"training.micro_batch="}), "--set training.micro_batch=N"));
  CHECK(contains(refusal({"cluster="}), "--set cluster.name=NAME"));
  const std::string several = input_error([] { resolved({}, "model: llama3-8b\n"); });
  for (const std::string part : {"cluster.name=", "cluster.gpus=", "training.sequence_length=",
                                 "training.micro_batch=", "training.global_batch="}) {
    CHECK_MESSAGE(contains(several, part), several);
  }
}

TEST_CASE("unknown names are refused with the nearest known ones") {
  CHECK(
      contains(refusal({"cluster.name=dgx-h10"}), "unknown cluster 'dgx-h10', nearest 'dgx-h100'"));
  CHECK(contains(refusal({"cluster.gpu.name=h100-sxm-80"}), "nearest 'h100-sxm-80gb'"));
  CHECK(contains(refusal({"model=llama3-8"}), "nearest 'llama3-8b'"));
  CHECK(contains(refusal({"software=torchtitan"}), "unknown software 'torchtitan'"));
}

TEST_CASE("legal settings that are not modelled are told apart from wrong ones") {
  const auto missing = [](const Sets& sets) { return unsupported([&] { resolved(sets); }); };
  CHECK(contains(missing({"training.document_length=4096"}), "unsupported: packed documents"));
  CHECK(
      contains(missing({"parallelism.placement=scattered"}), "parallelism.placement 'scattered'"));
  CHECK(contains(missing({"execution.tp_overlap=full"}), "execution.tp_overlap 'full'"));
  CHECK(missing({"training.document_length=8192", "parallelism.placement=linear",
                 "execution.tp_overlap=none"}) == "no error");
}

TEST_CASE("a plan within a known scenario is the plan of the whole run") {
  const Sets sets{"parallelism.tp=8", "parallelism.pp=2", "training.global_batch=32"};
  const Job whole = resolved(sets);
  const Job within = resolve_in(test::run_of(sets), resolved().scenario);
  CHECK(within.plan == whole.plan);
  CHECK(within.scenario.model.name == whole.scenario.model.name);
}

TEST_CASE("the rules are checked where they are asked for") {
  const Sets broken{"training.global_batch=60"};
  CHECK_NOTHROW(resolved(broken));
  CHECK(
      contains(input_error([&] { checked(broken); }),
               "--set training.global_batch: training.global_batch: found 60, must be a multiple"));
}

}  // namespace forerun

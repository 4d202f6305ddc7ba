#include "workloads/run_file.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/base/expect.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/workloads/runs.hpp"

namespace forerun {
namespace {

using test::contains;
using test::input_error;
using test::Sets;

const std::string kEveryKey = R"(cluster:
  name: dgx-h100
  nodes: 4
  gpus: 32
  gpus_per_node: 8
  gpu: {name: h100-sxm-80gb, memory: 78 GiB}
  nic: {count: 4, bandwidth: 200 Gb/s}
  racks: {nodes_per_rack: 2}
  oversubscription: 1.5
model: llama3-8b
training:
  sequence_length: 8192
  micro_batch: 2
  global_batch: 64
  precision: fp8-rowwise
  optimizer: muon
  master_dtype: bf16
  grad_dtype: fp16
  moment_dtype: fp32
  document_length: 4096
parallelism:
  dp_shard: 2
  dp_replicate: 3
  tp: 4
  cp: 5
  pp: 6
  ep: 7
  etp: 8
  zero_stage: 2
  sequence_parallel: false
  cp_kind: ring
  schedule: interleaved-1f1b
  virtual_stages: 2
  stage_layers: [2, 3]
  mesh_order: [tp, cp, dp_shard, dp_replicate, pp]
  placement: linear
execution:
  recompute: selective-op
  compile: true
  cuda_graphs: true
  reshard_after_forward: never
  async_tp: true
  tp_overlap: none
  attention: flash3
  loss: chunked
  cpu_offload: optimizer
software: torchtitan-2024-12
measured: {allreduce_busbw: 300 GB/s, allgather_busbw: 310 GB/s, reducescatter_busbw: 320 GB/s}
)";

RunFile read(const std::string& text, const Sets& sets = {}) {
  return read_run_text(text, "run.yaml", sets);
}
std::string refusal(const std::string& text, const Sets& sets = {}) {
  return input_error([&] { read(text, sets); });
}

}  // namespace

TEST_CASE("the cluster and its parts are read") {
  const ClusterSettings c = read(kEveryKey).cluster;
  CHECK(c.name == "dgx-h100");
  CHECK(c.nodes == 4);
  CHECK(c.gpus == 32);
  CHECK(c.gpus_per_node == 8);
  CHECK(c.gpu_name == "h100-sxm-80gb");
  CHECK(c.gpu_memory->value() == 78 * kGiB);
  CHECK(c.nic_count == 4);
  CHECK(c.nic_bandwidth->value() == 25e9);  // 200 / 8
  CHECK_FALSE(c.nic_bandwidth_in_bytes);
  CHECK(c.nodes_per_rack == 2);
  CHECK(c.oversubscription == 1.5);
  CHECK(read("cluster: {gpu: h100-sxm-80gb}\n").cluster.gpu_name == "h100-sxm-80gb");
  CHECK(read("cluster: dgx-h100\n").cluster.name == "dgx-h100");
  CHECK(read("cluster: {nic: {bandwidth: 50 GB/s}}\n").cluster.nic_bandwidth_in_bytes);
}

TEST_CASE("training, model, software and measurements are read") {
  const RunFile run = read(kEveryKey);
  const TrainingSettings& t = run.training;
  CHECK(t.sequence_length == 8192);
  CHECK(t.micro_batch == 2);
  CHECK(t.global_batch == 64);
  CHECK(t.document_length == 4096);
  CHECK(t.precision == Precision::kFp8Rowwise);
  CHECK(t.optimizer == OptimizerKind::kMuon);
  CHECK(t.master_dtype == DType::kBf16);
  CHECK(t.grad_dtype == DType::kFp16);
  CHECK(t.moment_dtype == DType::kFp32);
  CHECK(run.model_name == "llama3-8b");
  CHECK_FALSE(run.model.has_value());
  CHECK(run.software == "torchtitan-2024-12");
  CHECK(run.measured.allreduce_busbw->value() == 300e9);
  CHECK(run.measured.allgather_busbw->value() == 310e9);
  CHECK(run.measured.reducescatter_busbw->value() == 320e9);
}

TEST_CASE("the parallelism is read") {
  const ParallelismSettings p = read(kEveryKey).parallelism;
  CHECK(p.dp_shard == 2);
  CHECK(p.dp_replicate == 3);
  CHECK(p.tp == 4);
  CHECK(p.cp == 5);
  CHECK(p.pp == 6);
  CHECK(p.ep == 7);
  CHECK(p.etp == 8);
  CHECK(p.zero_stage == 2);
  CHECK(p.sequence_parallel == false);
  CHECK(p.cp_kind == CpKind::kRing);
  CHECK(p.schedule == ScheduleKind::kInterleaved1F1B);
  CHECK(p.virtual_stages == 2);
  CHECK(p.stage_layers == std::vector<std::int64_t>{2, 3});
  CHECK(p.mesh_order ==
        MeshOrder{Axis::kTp, Axis::kCp, Axis::kDpShard, Axis::kDpReplicate, Axis::kPp});
  CHECK(p.placement == "linear");
  CHECK(read("parallelism: {dp_shard: -1}\n").parallelism.dp_shard == -1);
}

TEST_CASE("the execution is read and resharding has its words and truths") {
  const ExecutionSettings e = read(kEveryKey).execution;
  CHECK(e.recompute == Recompute::kSelectiveOp);
  CHECK(e.compile == true);
  CHECK(e.cuda_graphs == true);
  CHECK(e.async_tp == true);
  CHECK(e.tp_overlap == "none");
  CHECK(e.attention == AttentionKernel::kFlash3);
  CHECK(e.loss == LossKind::kChunked);
  CHECK(e.cpu_offload == Offload::kOptimizer);
  CHECK(e.reshard_after_forward == Reshard::kNever);
  const auto reshard = [](const std::string& word) {
    return read("execution: {reshard_after_forward: " + word + "}\n")
        .execution.reshard_after_forward;
  };
  CHECK(reshard("true") == Reshard::kAlways);
  CHECK(reshard("always") == Reshard::kAlways);
  CHECK(reshard("false") == Reshard::kNever);
  CHECK(reshard("default") == Reshard::kDefault);
}

TEST_CASE("nothing is filled in where a run is silent") {
  const RunFile run = read("model: llama3-8b\n");
  CHECK_FALSE(run.cluster.name.has_value());
  CHECK_FALSE(run.cluster.nodes.has_value());
  CHECK_FALSE(run.training.precision.has_value());
  CHECK_FALSE(run.parallelism.tp.has_value());
  CHECK_FALSE(run.parallelism.sequence_parallel.has_value());
  CHECK_FALSE(run.execution.compile.has_value());
  CHECK_FALSE(run.software.has_value());
  CHECK_FALSE(run.measured.allreduce_busbw.has_value());
  CHECK(read("model: {layers: 2, hidden: 64, ffn_hidden: 8, heads: 4, vocab: 9}\n").model->layers ==
        2);
}

TEST_CASE("a key that is not known is refused in every section with the nearest one") {
  const auto unknown = [](const std::string& text, const std::string& place_and_hint) {
    CHECK_MESSAGE(contains(refusal(text), place_and_hint), text);
  };
  unknown("trainig: {}\n", "run.yaml:1:1: trainig: unknown key (did you mean 'training'?)");
  unknown("cluster: {node: 4}\n", "1:11: cluster.node: unknown key (did you mean 'nodes'?)");
  unknown("cluster: {gpu: {nam: x}}\n", "cluster.gpu.nam: unknown key (did you mean 'name'?)");
  unknown("cluster: {nic: {bandwith: x}}\n", "cluster.nic.bandwith: unknown key (did you mean");
  unknown("cluster: {racks: {nodes: 2}}\n", "cluster.racks.nodes: unknown key; known here");
  unknown("training: {microbatch: 1}\n",
          "training.microbatch: unknown key (did you mean 'micro_batch'");
  unknown("parallelism: {dp_shards: 1}\n", "(did you mean 'dp_shard'?)");
  unknown("execution: {compiled: true}\n", "(did you mean 'compile'?)");
  unknown("measured: {allreduce: 1 GB/s}\n", "measured.allreduce: unknown key");
  unknown("model: {layer: 2}\n", "model.layer: unknown key (did you mean 'layers'?)");
}

TEST_CASE("a value of the wrong kind or range is refused at its place") {
  const auto wrong = [](const std::string& text, const std::string& says) {
    CHECK_MESSAGE(contains(refusal(text), says), refusal(text));
  };
  wrong("training:\n  micro_batch: two\n", "run.yaml:2:16: training.micro_batch: found 'two'");
  wrong("training: {micro_batch: 0}\n", "found 0, must be at least 1");
  wrong("training: {sequence_length: 8k}\n", "found '8k', an integer from 1");
  wrong("training: {precision: bf61}\n", "allowed: bf16, fp16");
  wrong("parallelism: {tp: 0}\n", "parallelism.tp: found 0, must be at least 1, or -1");
  wrong("parallelism: {tp: -2}\n", "found -2, must be at least -1");
  wrong("parallelism: {zero_stage: 4}\n", "found 4, must be at most 3");
  wrong("parallelism: {mesh_order: [pp, tp]}\n", "all five axes are wanted");
  wrong("parallelism: {mesh_order: [pp, tp, cp, tp, dp_shard]}\n", "found 'tp', each of pp");
  wrong("parallelism: {mesh_order: [pp, tp, cp, dp, dp_shard]}\n", "found 'dp', each of pp");
  wrong("parallelism: {sequence_parallel: 1}\n", "true or false is wanted");
  wrong("parallelism: {stage_layers: 8}\n", "a list is wanted");
  wrong("parallelism: {stage_layers: [8, 0]}\n", "found 0, must be at least 1");
  wrong("cluster: {oversubscription: 0.5}\n", "must be at least 1");
  wrong("cluster: {gpu: {memory: 80}}\n", "cluster.gpu.memory: found '80', a unit is wanted");
  wrong("cluster: [dgx-h100]\n", "cluster: found a list, a mapping with name");
  wrong("execution: {reshard_after_forward: 2}\n", "allowed: default, always, never");
  wrong("model: [llama3-8b]\n", "model: found a list, a mapping with layers");
  wrong("8\n", "found '8', a mapping with cluster");
}

TEST_CASE("settings on top replace what a file says and know that they were set") {
  const RunFile run =
      read(kEveryKey, {"training.micro_batch=4", "parallelism.stage_layers=[1, 2, 3]",
                       "cluster.gpu.memory=70 GiB", "execution.compile=false"});
  CHECK(run.training.micro_batch == 4);
  CHECK(run.parallelism.stage_layers->size() == 3);
  CHECK(run.cluster.gpu_memory->value() == 70 * kGiB);
  CHECK(run.cluster.gpu_name == "h100-sxm-80gb");
  CHECK(run.execution.compile == false);
  CHECK(run.place_of("training.micro_batch").text() == "--set training.micro_batch");
  CHECK(read("model: llama3-8b\n", {"cluster.name=dgx-h100", "cluster.gpus=8"}).cluster.gpus == 8);
  CHECK_FALSE(read(kEveryKey, {"software="}).software.has_value());
}

TEST_CASE("a setting on top that cannot be read is refused as such") {
  CHECK(refusal(kEveryKey, {"tp"}) == "--set: tp: dotted.key=value is wanted");
  CHECK(refusal(kEveryKey, {"=8"}) == "--set: =8: dotted.key=value is wanted");
  CHECK(contains(refusal(kEveryKey, {"training.micro_batch=x"}),
                 "--set training.micro_batch: training.micro_batch: found 'x'"));
  CHECK(contains(refusal(kEveryKey, {"training.mikro_batch=2"}), "did you mean 'micro_batch'?"));
  CHECK(contains(refusal(kEveryKey, {"model.layers=2"}), "cannot be set inside 'llama3-8b'"));
  CHECK(contains(refusal(kEveryKey, {"model=[8"}), "--set model:1:1: not valid YAML"));
  CHECK(contains(refusal(kEveryKey, {"mod\xFF"
                                     "el=x"}),
                 "--set:1:4: byte 3 (0xFF)"));
}

TEST_CASE("a setting is looked for at its place, its section and then the file") {
  const RunFile run = read(kEveryKey);
  CHECK(run.place_of("training.micro_batch").text() == "run.yaml:13:16");
  CHECK(run.place_of("training.nothing").text() == "run.yaml:11:1");
  CHECK(run.place_of("nothing").text() == "run.yaml");
}

TEST_CASE("a run is read from a file and from JSON") {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("run.yaml", test::kPlainRun);
  CHECK(load_run(path, {"training.micro_batch=2"}).training.micro_batch == 2);
  CHECK(contains(input_error([&] { load_run(path + "x"); }), "cannot be opened"));
  const RunFile json = read("{\n\t\"model\": \"llama3-8b\",\n\t\"parallelism\": {\"tp\": 8}\n}\n");
  CHECK(json.parallelism.tp == 8);
}

}  // namespace forerun

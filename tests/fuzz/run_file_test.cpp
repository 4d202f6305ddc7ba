// Damaged run files and settings on top, as far as the rules.

#include "workloads/run_file.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/fuzz/mutator.hpp"
#include "tests/support/plans.hpp"
#include "topology/span.hpp"
#include "workloads/resolve.hpp"
#include "workloads/stage_split.hpp"

namespace forerun::test {
namespace {

const std::string kPipeline = R"(cluster: {name: dgx-h100, gpus: 64, oversubscription: 1.5}
model: {layers: 32, hidden: 4096, ffn_hidden: 14336, heads: 32, kv_heads: 8, vocab: 128256,
        experts: 8, top_k: 2, window: 4096}
training: {sequence_length: 8192, micro_batch: 1, global_batch: 64, precision: fp8-tensorwise}
parallelism: {tp: 2, cp: 2, pp: 4, ep: 2, schedule: interleaved-1f1b, virtual_stages: 2,
              stage_layers: [4, 4, 4, 4, 4, 4, 4, 4],
              mesh_order: [pp, dp_replicate, dp_shard, cp, tp]}
execution: {compile: true, async_tp: true, reshard_after_forward: always, attention: flash3}
software: torchtitan-2024-12
)";
const std::string kInline = R"(cluster:
  nodes: 2
  gpus_per_node: 8
  gpu: {name: h100-sxm-80gb, memory: 79 GiB}
  nic: {count: 8, bandwidth: 400 Gb/s}
  racks: {nodes_per_rack: 2}
model: llama3-8b
training:
  sequence_length: 4096
  micro_batch: 2
  global_batch: 32
parallelism:
  dp_shard: -1
  zero_stage: 2
measured: {allreduce_busbw: 300 GB/s}
)";

/// What must be true of any run that the rules let through.
void check_valid(const Job& job) {
  const Plan& p = job.plan;
  const Scenario& s = job.scenario;
  CHECK(p.gpus() == s.cluster.gpus);
  CHECK(p.microbatches() * p.micro_batch * p.data_parallel() == p.global_batch);
  CHECK(p.local_sequence() * p.cp == p.sequence_length);
  const std::vector<int> layers = layers_per_stage(s, p);
  CHECK(std::accumulate(layers.begin(), layers.end(), std::int64_t{0}) == s.model.layers);
  CHECK(std::all_of(layers.begin(), layers.end(), [](int n) { return n > 0; }));
  CHECK(count_parameters(s.model).total > 0);
  CHECK(flops_per_token(s.model, p.sequence_length, true) > 0);
  CHECK(s.cluster.nic_per_gpu().value() > 0);
  const Span world = span_of(
      p.mesh(), {Axis::kPp, Axis::kDpReplicate, Axis::kDpShard, Axis::kCp, Axis::kTp}, s.cluster);
  CHECK(world.nodes == (s.cluster.gpus > 1 ? s.cluster.nodes : 1));
}

void read_whole(const std::string& text, const std::vector<std::string>& sets = {}) {
  const RunFile run = read_run_text(text, "run.yaml", sets);
  const Job job = resolve_unchecked(run, source_data());
  check_rules(run, job);
  check_valid(job);
}

void damage(const std::string& original, std::uint64_t seed, int times) {
  CHECK_NOTHROW(read_whole(original));
  Mutator mutated(seed);
  Outcomes outcomes;
  for (int i = 0; i < times; ++i) {
    const std::string text = mutated(original);
    outcomes.expect_known(text, [&] { read_whole(text); });
  }
  CHECK(outcomes.values > times / 100);
  CHECK(outcomes.refused > times / 4);
}

const std::vector<std::string> kKeys{"cluster",
                                     "cluster.name",
                                     "cluster.nodes",
                                     "cluster.gpus",
                                     "cluster.gpus_per_node",
                                     "cluster.gpu",
                                     "cluster.gpu.memory",
                                     "cluster.nic.count",
                                     "cluster.nic.bandwidth",
                                     "cluster.racks.nodes_per_rack",
                                     "cluster.oversubscription",
                                     "model",
                                     "model.layers",
                                     "training.sequence_length",
                                     "training.micro_batch",
                                     "training.global_batch",
                                     "training.precision",
                                     "training.document_length",
                                     "parallelism.dp_shard",
                                     "parallelism.dp_replicate",
                                     "parallelism.tp",
                                     "parallelism.cp",
                                     "parallelism.pp",
                                     "parallelism.ep",
                                     "parallelism.etp",
                                     "parallelism.zero_stage",
                                     "parallelism.virtual_stages",
                                     "parallelism.schedule",
                                     "parallelism.stage_layers",
                                     "parallelism.mesh_order",
                                     "execution.compile",
                                     "execution.recompute",
                                     "execution.loss",
                                     "software",
                                     "measured.allreduce_busbw"};
const std::vector<std::string> kValues{"0",
                                       "1",
                                       "2",
                                       "3",
                                       "4",
                                       "7",
                                       "8",
                                       "16",
                                       "32",
                                       "60",
                                       "64",
                                       "-1",
                                       "-2",
                                       "16777216",
                                       "16777215",
                                       "1099511627776",
                                       "2147483648",
                                       "4294967296",
                                       "9007199254740992",
                                       "1e9",
                                       "80 GiB",
                                       "400 Gb/s",
                                       "1e300 Gb/s",
                                       "true",
                                       "false",
                                       "[1, 2]",
                                       "[]",
                                       "{}",
                                       "~",
                                       "",
                                       "interleaved-1f1b",
                                       "gpipe",
                                       "llama3-8b",
                                       "dgx-h100",
                                       "generic",
                                       "full",
                                       "[tp, cp, dp_shard, dp_replicate, pp]",
                                       "always",
                                       "{name: dgx-h100, gpus: 16777216}",
                                       "[16, 16]",
                                       "1073741824",
                                       "1024"};

}  // namespace

TEST_CASE("damaged run files end as a valid job or are refused") {
  damage(source_text("examples/01-first-forecast/run.yaml"), 11, 1200);
  damage(kPipeline, 12, 1200);
  damage(kInline, 13, 1200);
}

TEST_CASE("any values of any keys together end as a valid job or are refused") {
  Mutator random(14);
  Outcomes outcomes;
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::string> sets;
    std::string shown;
    for (std::size_t n = 1 + random.below(3); n > 0; --n) {
      sets.push_back(random.one_of(kKeys) + "=" + random.one_of(kValues));
      shown += sets.back() + "; ";
    }
    outcomes.expect_known(shown, [&] { read_whole(kInline, sets); });
  }
  CHECK(outcomes.values > 20);
  CHECK(outcomes.refused > 1000);
}

TEST_CASE("large degrees, batches and clusters together never leave their integers") {
  const std::vector<std::string> large{"1",      "2",       "3",        "64",       "1023",
                                       "1024",   "65536",   "16777216", "16777215", "-1",
                                       "524288", "1048576", "8388608"};
  const std::vector<std::string> keys{"cluster.nodes",
                                      "cluster.gpus_per_node",
                                      "cluster.racks.nodes_per_rack",
                                      "parallelism.dp_shard",
                                      "parallelism.dp_replicate",
                                      "parallelism.tp",
                                      "parallelism.cp",
                                      "parallelism.pp",
                                      "parallelism.ep",
                                      "parallelism.etp",
                                      "parallelism.virtual_stages",
                                      "training.micro_batch",
                                      "training.global_batch",
                                      "training.sequence_length"};
  Mutator random(15);
  Outcomes outcomes;
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::string> sets;
    std::string shown;
    for (std::size_t n = 2 + random.below(6); n > 0; --n) {
      sets.push_back(random.one_of(keys) + "=" + random.one_of(large));
      shown += sets.back() + "; ";
    }
    outcomes.expect_known(shown, [&] { read_whole(kInline, sets); });
  }
  CHECK(outcomes.refused > 1000);
}

TEST_CASE("damaged settings on top are applied or refused") {
  Mutator mutated(16);
  Outcomes outcomes;
  for (int i = 0; i < 3000; ++i) {
    const std::string set = mutated(mutated.one_of(kKeys) + "=" + mutated.one_of(kValues));
    outcomes.expect_known(set, [&] { read_whole(kInline, {set}); });
  }
  CHECK(outcomes.values > 20);
  CHECK(outcomes.refused > 1000);
}

}  // namespace forerun::test

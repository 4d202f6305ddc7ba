// Each rule has a plan that breaks it, which names what was found and the nearest valid values, and
// the plan beside it that holds.

#include "workloads/rules.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/base/expect.hpp"
#include "tests/workloads/runs.hpp"

namespace forerun {
namespace {

using test::checked;
using test::contains;
using test::input_error;
using test::resolved;
using test::Sets;

struct Case {
  std::string rule;
  Sets broken;
  std::vector<std::string> says;
  Sets holds;
};

const std::string kDims = "layers: 32, hidden: 4096, ffn_hidden: 14336, heads: 32, vocab: 128256";
const std::string kMoe = "model={" + kDims + ", kv_heads: 8, experts: 8, top_k: ";

const std::vector<Case> kCases{
    {"whole-nodes",
     {"cluster.gpus=60", "training.global_batch=60"},
     {"cluster.gpus: found 60, not whole nodes of 8 GPUs; nearest 56 and 64"},
     {"cluster.gpus=56", "training.global_batch=56"}},
    {"degrees-by-gpus",
     {"parallelism.dp_shard=32"},
     {"dp_shard 32 = 32 ranks on 64 GPUs; dp_shard 64 fits"},
     {"parallelism.dp_shard=64"}},
    {"degrees-by-gpus",
     {"parallelism.dp_shard=2", "parallelism.tp=24"},
     {"dp_shard 2 x tp 24 = 48 ranks on 64 GPUs", "multiply to 24, which does not divide 64"},
     {"parallelism.dp_shard=8", "parallelism.tp=8"}},
    {"heads-by-kv",
     {"model={" + kDims + ", kv_heads: 5}"},
     {"found 5; heads 32 must be a multiple of it: legal 1 2 4 8 16 32"},
     {"model={" + kDims + ", kv_heads: 4}"}},
    {"heads-by-tp",
     {"cluster.gpus=24", "parallelism.tp=3", "training.global_batch=8"},
     {"found 3; heads 32 must be a multiple", "legal tp: 1 2 4 8 16 32 (1 2 4 8 on nodes of 8)"},
     {"cluster.gpus=24", "parallelism.tp=2", "training.global_batch=12"}},
    {"kv-heads-by-tp",
     {"parallelism.tp=16"},
     {"found 16; kv_heads 8 must be a multiple of it in torchtitan-2024-12", "legal tp: 1 2 4 8 ("},
     {"parallelism.tp=8"}},
    {"stages-by-layers",
     {"parallelism.pp=64"},
     {"64 stages (pp 64 x virtual_stages 1) for 32 layers", "at most 32"},
     {"parallelism.pp=32"}},
    {"stage-layers",
     {"parallelism.pp=4", "parallelism.stage_layers=[8, 8, 8, 9]"},
     {"found 4 stages with 33 layers in all; 4 stages and 32 layers are wanted"},
     {"parallelism.pp=4", "parallelism.stage_layers=[7, 8, 8, 9]"}},
    {"stage-layers",
     {"parallelism.pp=4", "parallelism.stage_layers=[16, 16]"},
     {"found 2 stages with 32 layers"},
     {"parallelism.pp=2", "parallelism.stage_layers=[16, 16]"}},
    {"interleaved-stages",
     {"parallelism.pp=4", "parallelism.schedule=interleaved-1f1b", "parallelism.virtual_stages=1"},
     {"found 1; interleaved-1f1b wants at least 2 virtual stages"},
     {"parallelism.pp=4", "parallelism.schedule=interleaved-1f1b", "parallelism.virtual_stages=2"}},
    {"plain-stages",
     {"parallelism.pp=4", "parallelism.schedule=gpipe", "parallelism.virtual_stages=2"},
     {"found 2; gpipe runs one stage a rank: 1, or schedule interleaved-1f1b"},
     {"parallelism.pp=4", "parallelism.schedule=gpipe", "parallelism.virtual_stages=1"}},
    {"batch-by-replicas",
     {"training.global_batch=100"},
     {"found 100, must be a multiple of micro_batch 1 x data parallel 64 = 64; nearest 64 and 128"},
     {"training.global_batch=128"}},
    {"batch-by-replicas",
     {"training.global_batch=64", "training.micro_batch=2"},
     {"micro_batch 2 x data parallel 64 = 128; nearest 128"},
     {"training.global_batch=64", "training.micro_batch=1"}},
    // PyTorch's ScheduleInterleaved1F1B: n % max(1, n / pp) == 0 for n microbatches.
    {"interleaved-rounds",
     {"parallelism.pp=4", "parallelism.schedule=interleaved-1f1b", "training.global_batch=144"},
     {"9 microbatches", "nearest 8 and 12"},
     {"parallelism.pp=4", "parallelism.schedule=interleaved-1f1b", "training.global_batch=128"}},
    {"sequence-by-cp",
     {"parallelism.cp=8", "training.sequence_length=8200"},
     {"found 8200, must be a multiple of 2 x cp 8 = 16; nearest 8192 and 8208"},
     {"parallelism.cp=8", "training.sequence_length=8208"}},
    {"sequence-by-cp",
     {"parallelism.tp=8", "training.sequence_length=8190"},
     {"found 8190, must be a multiple of tp 8 (sequence parallel) = 8; nearest 8184 and 8192"},
     {"parallelism.tp=8", "training.sequence_length=8190", "parallelism.sequence_parallel=false"}},
    {"sequence-by-cp",
     {"parallelism.tp=2", "parallelism.cp=4", "training.sequence_length=8200"},
     {"2 x cp 4 x tp 2 = 16"},
     {"parallelism.tp=2", "parallelism.cp=4", "training.sequence_length=8192"}},
    {"top-k", {kMoe + "9}"}, {"found 9, must be at most the 8 experts"}, {kMoe + "8}"}},
    {"experts-by-ep",
     {kMoe + "2}", "parallelism.ep=16"},
     {"found 16; 8 experts over ranks of 64: legal ep 1 2 4 8"},
     {kMoe + "2}", "parallelism.ep=8"}},
    {"async-tp-compile",
     {"parallelism.tp=8", "execution.async_tp=true", "execution.compile=false"},
     {"async_tp needs compile in torchtitan-2024-12: set execution.compile: true"},
     {"parallelism.tp=8", "execution.async_tp=true", "execution.compile=true"}},
    {"microbatch-size",
     {"training.micro_batch=16777216", "training.sequence_length=1073741824"},
     {"found 16777216 sequences of 1073741824 tokens"},
     {"training.micro_batch=1", "training.sequence_length=1048576"}},
};

/// Rules of a stack that no catalogue entry has.
Job megatron(const Sets& sets) {
  Job job = resolved(sets);
  job.scenario.software.stage_split = StageSplit::kMegatron;
  job.scenario.software.kv_heads_replicated = true;
  return job;
}

std::string broken_by(const Job& job) {
  const Rule* rule = first_broken(job.scenario, job.plan);
  return rule == nullptr ? "none" : std::string(rule->id);
}

}  // namespace

TEST_CASE("each rule is broken by one plan and holds for the plan beside it") {
  for (const Case& c : kCases) {
    CAPTURE(c.rule);
    CHECK(broken_by(resolved(c.broken)) == c.rule);
    const std::string message = input_error([&] { checked(c.broken); });
    for (const std::string& part : c.says)
      CHECK_MESSAGE(contains(message, part), message);
    CHECK(broken_by(resolved(c.holds)) == "none");
  }
}

TEST_CASE("every rule of the table has its case and points to a setting") {
  std::set<std::string> covered{"even-stages"};
  for (const Case& c : kCases)
    covered.insert(c.rule);
  std::set<std::string> known;
  for (const Rule& rule : plan_rules()) {
    CHECK_MESSAGE(known.insert(std::string(rule.id)).second, rule.id);
    CHECK(rule.key.find('.') != std::string_view::npos);
  }
  CHECK(known == covered);
}

TEST_CASE("a stack that wants equal stages refuses others unless the run lists them") {
  const Job job = megatron({"cluster.gpus=24", "parallelism.pp=3", "training.global_batch=24"});
  REQUIRE(broken_by(job) == "even-stages");
  CHECK(contains(first_broken(job.scenario, job.plan)->problem({job.scenario, job.plan}),
                 "32 layers over 3 stages: torchtitan-2024-12 wants equal stages; legal numbers of "
                 "stages: 1 2 4 8 16 32"));
  CHECK(broken_by(megatron({"parallelism.pp=4"})) == "none");
  CHECK(broken_by(megatron({"cluster.gpus=24", "parallelism.pp=3", "training.global_batch=24",
                            "parallelism.stage_layers=[10, 11, 11]"})) == "none");
}

TEST_CASE("a stack that repeats key and value heads takes tp above their number") {
  CHECK(broken_by(megatron({"parallelism.tp=16"})) == "none");
  CHECK(broken_by(resolved({"parallelism.tp=16"})) == "kv-heads-by-tp");
}

TEST_CASE("fewer GPUs than a node holds are no broken node") {
  CHECK(broken_by(resolved({"cluster.gpus=6", "training.global_batch=6"})) == "none");
  CHECK(broken_by(resolved({"cluster.gpus=9", "training.global_batch=9"})) == "whole-nodes");
}

TEST_CASE("a broken rule is reported at the place of its setting") {
  const std::string text = test::kPlainRun + "parallelism:\n  dp_shard: 32\n";
  CHECK(contains(input_error([&] { checked({}, text); }), "run.yaml:6:13: parallelism.dp_shard: "));
}

}  // namespace forerun

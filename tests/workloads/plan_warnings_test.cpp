// What is legal and worth a word.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/base/expect.hpp"
#include "tests/workloads/runs.hpp"

namespace forerun {
namespace {

using test::checked;
using test::contains;
using test::Sets;
using Warnings = std::vector<std::string>;

}  // namespace

TEST_CASE("settings without effect are named") {
  CHECK(checked({"parallelism.ep=8"}).warnings ==
        Warnings{"parallelism.ep: 8 has no effect without experts"});
  CHECK(checked({"parallelism.virtual_stages=2"}).warnings ==
        Warnings{"parallelism.virtual_stages: 2 has no effect with pp 1"});
  CHECK(checked({"execution.async_tp=true", "execution.compile=true"}).warnings ==
        Warnings{"execution.async_tp: no effect with tp 1"});
  CHECK(checked({"parallelism.tp=8", "execution.async_tp=true", "execution.compile=true"})
            .warnings.empty());
}

TEST_CASE("fewer microbatches than stages leave a bubble that is told") {
  // Bubble of 1F1B and GPipe: (pp - 1) / (pp - 1 + m).
  const Warnings one = checked({"parallelism.pp=4", "training.global_batch=16"}).warnings;
  REQUIRE(one.size() == 1);
  CHECK(one[0] == "1 microbatch for 4 stages: the bubble is 3/4 of the step (75%)");
  const Warnings two = checked({"parallelism.pp=4", "training.global_batch=32"}).warnings;
  REQUIRE(two.size() == 1);
  CHECK(contains(two[0], "2 microbatches for 4 stages: the bubble is 3/5 of the step (60%)"));
  CHECK(checked({"parallelism.pp=4", "training.global_batch=64"}).warnings.empty());
}

TEST_CASE("tensor parallel groups that cross nodes are told, however they come to") {
  const std::string crosses = "cross nodes of 8 GPUs";
  const auto warned = [&](const Sets& sets) {
    const Warnings warnings = test::resolved(sets).warnings;
    return warnings.size() == 1 && contains(warnings[0], crosses);
  };
  CHECK(warned({"parallelism.tp=16"}));
  CHECK_FALSE(warned({"parallelism.tp=8"}));
  // tp outermost: its ranks are 8 apart.
  CHECK(
      warned({"parallelism.tp=8", "parallelism.mesh_order=[tp, pp, dp_replicate, dp_shard, cp]"}));
  // Three do not divide eight: ranks 6, 7 and 8 are of two nodes.
  CHECK(warned({"cluster.gpus=24", "parallelism.tp=3"}));
  // On a node that is not full there is no second one.
  CHECK_FALSE(warned({"cluster.gpus=6", "parallelism.tp=3"}));
}

TEST_CASE("tensors with fewer rows than shards are told") {
  const Sets many{"cluster.gpus=8192", "training.global_batch=8192"};
  const Warnings warnings = checked(many).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "tensors of 4096 rows are cut over 8192 ranks"));
  CHECK(checked({"cluster.gpus=4096", "training.global_batch=4096"}).warnings.empty());
}

}  // namespace forerun

// The lowered program as a tree, read back.

#include "sim/program_json.hpp"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/sim/lowered.hpp"

using namespace forerun;
using Json = nlohmann::json;

namespace {

Json tree_of(const test::Lowered& lowered) {
  return Json::parse(program_json(lowered.program));
}

/// How often a block named so stands in a chain.
std::int64_t count_of(const Json& tree, const Json& chain, const std::string& part) {
  std::int64_t n = 0;
  for (const Json& link : chain) {
    const std::string name = tree["blocks"][std::to_string(link["block"].get<int>())]["name"];
    if (name.find(part) != std::string::npos) n += link["count"].get<std::int64_t>();
  }
  return n;
}

/// Actions of a rank by kind, the cycle counted as often as it repeats.
std::map<std::string, std::int64_t> actions_of(const Json& tree, std::size_t rank) {
  std::map<std::string, std::int64_t> out;
  const Json& r = tree["schedule"]["ranks"][rank];
  for (const char* part : {"prefix", "cycle", "suffix"}) {
    const std::int64_t times =
        std::string(part) == "cycle" ? tree["schedule"]["cycle_repeats"].get<std::int64_t>() : 1;
    for (const Json& a : r[part]) {
      const std::string kind = a["action"];
      out[kind.substr(0, kind.find('-'))] += times;
    }
  }
  return out;
}

void check_operations(const Json& tree) {
  std::size_t operations = 0;
  for (const Json& block : tree["blocks"]) {
    CHECK(block["host_seconds"] >= 0);
    CHECK(block["memory_peak"] >= 0);
    CHECK(block["memory_peak"] >= block["memory_net"]);
    std::size_t index = 0;
    for (const Json& op : block["operations"]) {
      CHECK(op["seconds"] >= 0);
      CHECK(op["issued_at"] >= 0);
      if (op.contains("after")) {
        for (const int earlier : op["after"])
          CHECK(static_cast<std::size_t>(earlier) < index);
      }
      ++index;
      ++operations;
    }
  }
  CHECK(operations > 50);
}

}  // namespace

TEST_CASE("the tree of one stage holds the plan's microbatches and layers") {
  const test::Lowered lowered(test::kOneStage);
  const Json tree = tree_of(lowered);
  CHECK(tree["microbatches"] == 2);  // 64 sequences over 32 replicas
  REQUIRE(tree["stages"].size() == 1);
  const Json& chains = tree["stages"][0]["chains"];
  CHECK(count_of(tree, chains["forward"], "decoder") == 32);
  CHECK(count_of(tree, chains["backward-last"], "decoder") == 32);
  CHECK(actions_of(tree, 0)["forward"] == 2);
  CHECK(actions_of(tree, 0)["backward"] == 2);
  CHECK(actions_of(tree, 0)["optimizer"] == 1);
  check_operations(tree);
}

TEST_CASE("the tree of an interleaved pipeline holds every stage of every rank") {
  const test::Lowered lowered(test::kInterleaved);
  const Json tree = tree_of(lowered);
  CHECK(tree["microbatches"] == 8);  // 64 sequences over 8 replicas
  CHECK(tree["message_seconds"] > 0);
  REQUIRE(tree["stages"].size() == 8);
  std::int64_t layers = 0;
  for (std::size_t s = 0; s < 8; ++s) {
    CHECK(tree["stages"][s]["rank"] == s % 4);
    layers += count_of(tree, tree["stages"][s]["chains"]["forward"], "decoder");
  }
  CHECK(layers == 32);
  REQUIRE(tree["schedule"]["ranks"].size() == 4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(actions_of(tree, rank)["forward"] == 16);  // 8 microbatches of 2 stages
    CHECK(actions_of(tree, rank)["backward"] == 16);
    CHECK(actions_of(tree, rank)["reduce"] == 2);
  }
  check_operations(tree);
}

TEST_CASE("a block that no chain uses is left out, one that a chain names is there") {
  const Json tree = tree_of(test::Lowered(test::kInterleaved));
  std::map<std::string, int> named;
  for (const Json& stage : tree["stages"]) {
    for (const Json& chain : stage["chains"]) {
      for (const Json& link : chain)
        ++named[std::to_string(link["block"].get<int>())];
    }
  }
  CHECK(named.size() == tree["blocks"].size());
  for (const auto& [block, times] : named)
    CHECK(tree["blocks"].contains(block));
}

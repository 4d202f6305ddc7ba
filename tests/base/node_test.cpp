#include "base/node.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/text_file.hpp"
#include "base/yaml.hpp"
#include "tests/base/expect.hpp"

namespace forerun {
namespace {

using test::contains;
using test::input_error;

Node scalar(const std::string& text) {
  return parse_yaml(text, "new");
}

}  // namespace

TEST_CASE("a node says what it is") {
  CHECK(describe(Node{}) == "nothing");
  CHECK(describe(parse_yaml("[1]", "x")) == "a list");
  CHECK(describe(parse_yaml("a: 1", "x")) == "a mapping");
  CHECK(describe(scalar("8")) == "'8'");
  CHECK(describe(scalar(std::string(61, 'x'))) == "'" + std::string(60, 'x') + "...'");
}

TEST_CASE("a long text is cut between characters and never inside one") {
  for (std::size_t ascii = 55; ascii < 61; ++ascii) {
    const std::string text = std::string(ascii, 'x') + "\xF0\x9F\x9A\x80\xC3\xA9\xE2\x82\xAC!!!!";
    const std::string shown = describe(scalar("'" + text + "'"));
    CHECK(checked_utf8(shown, "x") == shown);
    CHECK(shown.size() <= 60 + std::string("'...'").size());
  }
}

TEST_CASE("a key is found in its mapping and nowhere else") {
  Node root = parse_yaml("{tp: 8, deep: {cp: 2}}", "x");
  REQUIRE(root.find("tp") != nullptr);
  CHECK(root.find("tp")->scalar == "8");
  CHECK(root.find("cp") == nullptr);
  CHECK(Node{}.find("tp") == nullptr);
}

TEST_CASE("a dotted key is set, replaced, and made with the mappings above it") {
  Node root = parse_yaml("parallelism: {tp: 8}", "x");
  set_dotted(root, "parallelism.tp", scalar("4"));
  set_dotted(root, "parallelism.cp", scalar("2"));
  set_dotted(root, "cluster.racks.nodes_per_rack", scalar("2"));
  CHECK(root.find("parallelism")->find("tp")->scalar == "4");
  CHECK(root.find("parallelism")->find("cp")->scalar == "2");
  CHECK(root.find("parallelism")->entries.size() == 2);
  CHECK(root.find("cluster")->find("racks")->find("nodes_per_rack")->scalar == "2");
  Node empty;
  set_dotted(empty, "model", scalar("llama3-8b"));
  CHECK(empty.find("model")->scalar == "llama3-8b");
}

TEST_CASE("a whole mapping is replaced where a value is set in its place") {
  Node root = parse_yaml("cluster: {name: x}", "x");
  set_dotted(root, "cluster", scalar("dgx-h100"));
  CHECK(describe(*root.find("cluster")) == "'dgx-h100'");
}

TEST_CASE("a dotted key inside a value, with an empty part or without end is refused in full") {
  Node root = parse_yaml("{model: llama3-8b, list: [1]}", "x");
  CHECK(input_error([&] { set_dotted(root, "model.layers.x", scalar("4")); }) ==
        "new:1:1: model.layers.x: cannot be set inside 'llama3-8b'; a mapping is wanted there");
  CHECK(contains(input_error([&] { set_dotted(root, "list.0", scalar("4")); }), "inside a list"));
  for (const std::string key : {"", ".", "a.", ".a", "a..b"}) {
    CHECK_MESSAGE(contains(input_error([&] { set_dotted(root, key, scalar("4")); }), "empty part"),
                  key);
  }
  std::string deep = "a";
  for (int i = 0; i < 100000; ++i)
    deep += ".a";
  CHECK(contains(input_error([&] { set_dotted(root, deep, scalar("4")); }), "more than 64 parts"));
}

}  // namespace forerun

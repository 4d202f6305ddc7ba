#include "base/yaml.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/mapping_reader.hpp"
#include "tests/base/expect.hpp"
#include "tests/base/temporary_folder.hpp"

namespace forerun {
namespace {

using test::contains;
using test::input_error;

std::string refusal(const std::string& text) {
  return input_error([&] { parse_yaml(text, "x"); });
}

const Node& at(const Node& root, const std::string& key) {
  const Node* found = root.find(key);
  REQUIRE(found != nullptr);
  return *found;
}

}  // namespace

TEST_CASE("values and keys know their line and column") {
  const Node root = parse_yaml("# a run\ncluster:\n  name: dgx-h100\n  list: [7, 8]\n", "run.yaml");
  const Node& cluster = at(root, "cluster");
  CHECK(at(cluster, "name").mark.place().text() == "run.yaml:3:9");
  CHECK(cluster.entries[0].key_mark.place().text() == "run.yaml:3:3");
  CHECK(at(cluster, "list").items[1].mark.place().text() == "run.yaml:4:13");
}

TEST_CASE("JSON is read as YAML flow text, also with tabs") {
  const Node root = parse_yaml("{\n\t\"model\": \"llama3-8b\",\n\t\"tp\": [1, 2]\n}", "x");
  CHECK(at(root, "model").scalar == "llama3-8b");
  CHECK(at(root, "model").quoted);
  CHECK(at(root, "tp").items.size() == 2);
}

TEST_CASE("null is written in five ways and a quoted one is text") {
  const Node root = parse_yaml("{a: , b: ~, c: null, d: Null, e: NULL, f: 'null', g: ''}", "x");
  for (const std::string key : {"a", "b", "c", "d", "e"})
    CHECK(at(root, key).kind == Node::Kind::kNull);
  for (const std::string key : {"f", "g"})
    CHECK(at(root, key).kind == Node::Kind::kScalar);
}

TEST_CASE("quoted and block scalars are text and plain ones are not") {
  const Node root = parse_yaml("a: '8'\nb: \"8\"\nc: |\n  8\nd: 8\n", "x");
  for (const std::string key : {"a", "b", "c"})
    CHECK(at(root, key).quoted);
  CHECK_FALSE(at(root, "d").quoted);
  CHECK(at(root, "d").scalar == "8");
}

TEST_CASE("a key that stands twice is refused with both lines") {
  CHECK(
      refusal("tp: 1\ncp: 2\ntp: 3\n") ==
      "x:3:1: tp: the key stands twice, first on line 1 with '1' and again on line 3; one of them "
      "must go");
  CHECK(contains(refusal("a:\n  b:\n    tp: 1\n    'tp': 3\n"), "x:4:5: a.b.tp: the key stands"));
  CHECK(contains(refusal("{\"tp\": 1, \"tp\": 1}"), "tp: the key stands twice"));
  CHECK_NOTHROW(parse_yaml("a: {tp: 1}\nb: {tp: 1}\n", "x"));
}

TEST_CASE("merge keys are refused and a quoted one is a key like others") {
  CHECK(refusal("base: &b {tp: 1}\nrun:\n  <<: *b\n") ==
        "x:3:3: run.<<: merge keys are not read: write the merged keys out");
  CHECK(at(parse_yaml("'<<': 1", "x"), "<<").scalar == "1");
}

TEST_CASE("a tab as indentation is refused with line and column") {
  CHECK(contains(refusal("a:\n  b: 1\n\tc: 2\n"), "x:3:1: a tab is used for indentation"));
  CHECK(contains(refusal("a:\n  \tb: 1\n"), "x:2:3: a tab"));
  CHECK(at(parse_yaml("a:\t1 # here\tit is no indentation\n", "x"), "a").scalar == "1");
}

TEST_CASE("one document is wanted") {
  CHECK(contains(refusal("a: 1\n---\nb: 2\n"), "x:3:1: a second YAML document"));
  CHECK_NOTHROW(parse_yaml("---\na: 1\n...\n", "x"));
  CHECK(refusal("") == "x: the file is empty");
  for (const std::string text : {"\n\n", "# a comment\n", " "}) {
    CHECK_MESSAGE(refusal(text) == "x: the file holds no settings", text);
  }
}

TEST_CASE("a key must be plain text") {
  CHECK(contains(refusal("[a, b]: 1"), "a key must be plain text, found a list"));
  CHECK(contains(refusal("{a: 1}: 1"), "a key must be plain text, found a mapping"));
  CHECK(contains(refusal("~: 1"), "a key must be plain text, found nothing"));
}

TEST_CASE("what is left open is refused") {
  for (const std::string text :
       {"a: [1, 2", "a: {b: 1", "a: 'text", "a: 'text\n", "a: \"text\nb: 2\n\n", "{a: 1}}",
        "a: b: c", "a: - b", "a: @b", "\"\\q\""}) {
    CHECK_MESSAGE(contains(refusal(text), "not valid YAML"), text);
  }
}

TEST_CASE("a value of a command line is a scalar, a list or nothing") {
  CHECK(parse_yaml_value("80 GiB", "--set").scalar == "80 GiB");
  CHECK(parse_yaml_value("[7, 8]", "--set").items.size() == 2);
  CHECK(parse_yaml_value("", "--set").kind == Node::Kind::kNull);
  CHECK(parse_yaml_value("  ", "--set").kind == Node::Kind::kNull);
  CHECK(
      contains(input_error([] { parse_yaml_value("[7", "--set tp"); }), "--set tp:1:1: not valid"));
}

TEST_CASE("a file is named in what is wrong with it") {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("run.yaml", "a: 1\na: 2\n");
  CHECK(contains(input_error([&] { read_yaml_file(path); }), path + ":2:1: a: the key stands"));
}

}  // namespace forerun

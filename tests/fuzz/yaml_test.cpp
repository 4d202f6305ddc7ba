// Damaged YAML and JSON texts.

#include "base/yaml.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/text_file.hpp"
#include "tests/fuzz/mutator.hpp"

namespace forerun::test {
namespace {

const std::string kJson =
    "{\n\t\"model\": \"llama3-8b\",\n\t\"cluster\": {\"name\": \"dgx-h100\", \"nodes\": 4},\n"
    "\t\"list\": [1, 2.5e3, -7, null, true, \"\\u00e9 \\\"x\\\"\"],\n\t\"deep\": [[[{\"a\": "
    "[]}]]]\n}\n";
const std::string kAnchors =
    "base: &a {tp: 8, list: &b [1, 2, *c]}\nother: *a\n? key\n: value\ntext: |\n  two\n  lines\n"
    "folded: >-\n  two\n  lines\n'quoted': \"\\x41\"\nmore: [*b, *a, {x: *b}]\n";

/// Every node has a kind that fits what it holds, and a place inside the text.
int checked_nodes(const Node& node, int lines) {
  CHECK(node.mark.line <= lines);
  if (node.kind != Node::Kind::kSequence) CHECK(node.items.empty());
  if (node.kind != Node::Kind::kMapping) CHECK(node.entries.empty());
  int count = 1;
  for (const Node& item : node.items)
    count += checked_nodes(item, lines);
  for (const Node::Entry& entry : node.entries) {
    CHECK(&entry.value == node.find(entry.key));  // keys stand once
    count += checked_nodes(entry.value, lines);
  }
  return count;
}

void damage(const std::string& original, std::uint64_t seed, int times) {
  Mutator mutated(seed);
  Outcomes outcomes;
  for (int i = 0; i < times; ++i) {
    const std::string text = mutated(original);
    outcomes.expect_known(text, [&] {
      const Node root = parse_yaml(checked_utf8(text, "x"), "x");
      const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
      CHECK(checked_nodes(root, lines) <= YamlLimits{}.nodes);
    });
  }
  CHECK(outcomes.values > times / 20);
  CHECK(outcomes.refused > times / 20);
  CHECK(outcomes.unsupported == 0);
}

}  // namespace

TEST_CASE("damaged YAML is read or refused") {
  damage(source_text("examples/01-first-forecast/run.yaml"), 1, 2000);
  damage(source_text("workloads/catalog/software/torchtitan-2024-12.yaml"), 2, 500);
}

TEST_CASE("damaged JSON is read or refused") {
  damage(kJson, 3, 3000);
}

TEST_CASE("damaged anchors, blocks and explicit keys are read or refused") {
  damage(kAnchors.substr(0, kAnchors.find(", *c")) + kAnchors.substr(kAnchors.find(", *c") + 4), 4,
         3000);
}

TEST_CASE("single values of a command line are read or refused") {
  Mutator mutated(5);
  Outcomes outcomes;
  const std::vector<std::string> values{"8", "[7, 8, 7]", "{name: dgx-h100, gpus: 8}", "80 GiB",
                                        "true"};
  for (int i = 0; i < 5000; ++i) {
    const std::string text = mutated(mutated.one_of(values));
    outcomes.expect_known(text, [&] { parse_yaml_value(checked_utf8(text, "x"), "--set"); });
  }
  CHECK(outcomes.values > 500);
  CHECK(outcomes.refused > 500);
}

}  // namespace forerun::test

// Documents that are large, deep or multiply themselves.

#include <doctest/doctest.h>

#include <string>

#include "base/yaml.hpp"
#include "tests/base/expect.hpp"

namespace forerun {
namespace {

using test::contains;
using test::input_error;

std::string refusal(const std::string& text, const YamlLimits& limits = {}) {
  return input_error([&] { parse_yaml(text, "x", limits); });
}

std::string times(const std::string& part, int count) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += part;
  return out;
}

/// Nine lists of ten aliases each of the list before it: 10^9 values from some 500 bytes.
std::string alias_bomb() {
  std::string text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before +
            times(", " + before, 9) + "]\n";
  }
  return text;
}

}  // namespace

TEST_CASE("lists and mappings may be nested to the limit and no deeper") {
  CHECK_NOTHROW(parse_yaml(times("[", 64) + times("]", 64), "x"));
  CHECK(contains(refusal(times("[", 65) + times("]", 65)), "x:1:65: nested deeper than 64 levels"));
  std::string block;
  for (int i = 0; i < 65; ++i)
    block += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  CHECK(contains(refusal(block + std::string(65, ' ') + "a: 1\n"), "nested deeper than 64 levels"));
  CHECK(contains(refusal("a: {b: {c: 1}}", {.depth = 2}), "nested deeper than 2 levels"));
}

TEST_CASE("ten thousand openings of any kind end at the limit") {
  for (const std::string opening : {"[", "{", "- ", "? ", "[{a: ", "{a: [", "&a ", "!a ", "a: "}) {
    CHECK_MESSAGE(refusal(times(opening, 10000)) != "no error", opening);
  }
  // Closings in a comment do not make room for more openings.
  CHECK(contains(refusal("# " + times("]", 10000) + "\na: " + times("[", 10000)), "nested deeper"));
}

TEST_CASE("an alias is the value of its anchor at its own place") {
  const Node root = parse_yaml("base: &b {tp: 8}\nsame: *b\nlist: &l [1, *b]\nkey: &k tp\n", "x");
  CHECK(root.find("same")->find("tp")->scalar == "8");
  CHECK(root.find("same")->mark.line == 2);
  CHECK(root.find("list")->items[1].find("tp")->scalar == "8");
  CHECK(root.find("key")->scalar == "tp");
}

TEST_CASE("an alias without anchor or inside its own is refused") {
  CHECK(
      contains(refusal("a: *b\n"), "x:1:4: not valid YAML: the referenced anchor is not defined"));
  CHECK(contains(refusal("a: &b [1, *b]\n"), "x:1:11: an alias inside its own anchor"));
}

TEST_CASE("aliases that multiply are refused before they are expanded") {
  CHECK(contains(refusal(alias_bomb()), "more than 100000 values with aliases expanded"));
}

TEST_CASE("anchors inside anchors count what they keep") {
  // 60 anchors, each of which keeps the 20,000 values inside it: 1.2 million.
  std::string text = "a: ";
  for (int i = 0; i < 60; ++i)
    text += "&a" + std::to_string(i) + " [";
  text += "1" + times(", 1", 19999) + times("]", 60);
  CHECK(contains(refusal(text), "more than 100000 values"));
}

TEST_CASE("the number of values is limited exactly") {
  // A list of n scalars is n + 1 values.
  CHECK_NOTHROW(parse_yaml("[1, 2, 3]", "x", {.nodes = 4}));
  CHECK(contains(refusal("[1, 2, 3]", {.nodes = 3}), "x:1:8: more than 3 values"));
  CHECK_NOTHROW(parse_yaml("[&a 1, *a]", "x", {.nodes = 4}));  // and one that the anchor keeps
  CHECK(contains(refusal("[&a 1, *a]", {.nodes = 3}), "more than 3 values"));
}

TEST_CASE("four megabytes of short lines are read in one pass") {
  // Looking for a tab to the end of the file from each line would read 8 x 10^12 bytes.
  const std::string lines = times("\n", 1 << 22);
  CHECK(parse_yaml(lines + "a: 1\n", "x").find("a")->mark.line == (1 << 22) + 1);
  CHECK(contains(refusal(times("- 1\n", 1 << 20)), "more than 100000 values"));
}

}  // namespace forerun

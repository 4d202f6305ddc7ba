#include "base/mapping_reader.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/yaml.hpp"
#include "tests/base/expect.hpp"

namespace forerun {
namespace {

using test::contains;
using test::input_error;

const std::vector<std::string> kKnown{"tp", "cp", "name", "list"};

std::string refusal(const std::string& yaml) {
  return input_error([&] { MappingReader(parse_yaml(yaml, "x"), "parallelism", kKnown); });
}

}  // namespace

TEST_CASE("a key that is not known is refused at its place with the nearest one") {
  CHECK(refusal("tp: 8\ncpp: 1\n") == "x:2:1: parallelism.cpp: unknown key (did you mean 'cp'?)");
  CHECK(refusal("colour: 1\n") ==
        "x:1:1: parallelism.colour: unknown key; known here: tp, cp, name, list");
  CHECK(refusal("Tp: 1\n") != "no error");
  CHECK(refusal("{tp: 8, cp: 1}") == "no error");
}

TEST_CASE("what is no mapping is refused with what it should hold") {
  CHECK(refusal("[tp, cp]") ==
        "x:1:1: parallelism: found a list, a mapping with tp, cp, name, list is wanted");
  CHECK(contains(refusal("8"), "found '8', a mapping with"));
  CHECK(contains(refusal("~"), "found nothing, a mapping with"));
}

TEST_CASE("a key is found, absent or null, and missing where it is needed") {
  const Node root = parse_yaml("tp: 8\ncp: null\n", "x");
  const MappingReader reader(root, "parallelism", kKnown);
  CHECK(reader.optional("tp", integer_in({})) == 8);
  CHECK_FALSE(reader.optional("cp", integer_in({})).has_value());
  CHECK_FALSE(reader.optional("name", to_text_value).has_value());
  CHECK(reader.required("tp", integer_in({})) == 8);
  CHECK(input_error([&] { reader.required("name", to_text_value); }) ==
        "x:1:1: parallelism.name: is missing");
  CHECK(input_error([&] { (void)reader.need("cp"); }) == "x:1:1: parallelism.cp: is missing");
}

TEST_CASE("the dotted key begins at the top without a dot") {
  const Node root = parse_yaml("tp: 8\n", "x");
  CHECK(MappingReader(root, "", kKnown).dotted("tp") == "tp");
  CHECK(MappingReader(root, "a.b", kKnown).dotted("tp") == "a.b.tp");
}

TEST_CASE("a value of the wrong kind is refused at its place with its dotted key") {
  const Node root = parse_yaml("tp: many\ncp: [2]\nname: {}\nlist: 3\n", "x");
  const MappingReader reader(root, "p", kKnown);
  CHECK(input_error([&] {
          reader.required("tp", integer_in({1, 8}));
        }) == "x:1:5: p.tp: found 'many', an integer from 1 to 8 is wanted");
  CHECK(contains(input_error([&] { reader.required("cp", integer_in({})); }),
                 "x:2:5: p.cp: found a list, an integer from"));
  CHECK(input_error([&] { reader.required("name", to_text_value); }) ==
        "x:3:7: p.name: found a mapping, a text is wanted");
  CHECK(contains(input_error([&] { reader.required("list", to_numbers); }),
                 "x:4:7: p.list: found '3', a list is wanted"));
}

TEST_CASE("a word of an enum is taken exactly and else the allowed ones are named") {
  const auto read = [](const char* text) { return to_enum<DType>(parse_yaml(text, "x"), "k"); };
  CHECK(read("bf16") == DType::kBf16);
  CHECK(read("'bf16'") == DType::kBf16);
  CHECK(input_error([&] { read("bf61"); }) ==
        "x:1:1: k: found 'bf61', allowed: fp32, bf16, fp16, fp8, int64, bool (did you mean "
        "'bf16'?)");
  CHECK(contains(input_error([&] { read("BF16"); }), "allowed: fp32"));
}

TEST_CASE("lists are read item by item and the place of a bad item is named") {
  const auto list = [](const char* text) { return parse_yaml(text, "x"); };
  CHECK(to_integers(list("[7, 8, 7]"), "k", {1, 9}) == std::vector<std::int64_t>{7, 8, 7});
  CHECK(to_integers(list("[]"), "k").empty());
  CHECK(to_numbers(list("[1.5, 2]"), "k") == std::vector<double>{1.5, 2});
  CHECK(to_texts(list("[pp, 'tp']"), "k") == std::vector<std::string>{"pp", "tp"});
  CHECK(contains(input_error([&] {
                   to_integers(list("[7, 10]"), "k", {1, 9});
                 }),
                 "x:1:5: k: found 10, must be at most 9"));
  CHECK(contains(input_error([&] { to_texts(list("[a, [b]]"), "k"); }), "x:1:5: k: found a list"));
}

}  // namespace forerun

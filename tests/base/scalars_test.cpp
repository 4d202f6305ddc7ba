// The conversions of a single value: integers, numbers, truth, quantities.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "base/mapping_reader.hpp"
#include "base/yaml.hpp"
#include "tests/base/expect.hpp"

namespace forerun {
namespace {

using test::contains;
using test::input_error;

constexpr IntRange kWide{-1'000'000, std::int64_t{1} << 53};

std::int64_t integer(const std::string& text, IntRange range = kWide) {
  return to_integer(parse_yaml(text, "x"), "k", range);
}
std::string integer_error(const std::string& text, IntRange range = kWide) {
  return input_error([&] { integer(text, range); });
}
double number(const std::string& text) {
  return to_number(parse_yaml(text, "x"), "k");
}
std::string number_error(const std::string& text) {
  return input_error([&] { number(text); });
}
std::string bool_error(const std::string& text) {
  return input_error([&] { to_bool(parse_yaml(text, "x"), "k"); });
}

}  // namespace

TEST_CASE("an integer is decimal digits, with underscores between them") {
  CHECK(integer("8") == 8);
  CHECK(integer("-1") == -1);
  CHECK(integer("0") == 0);
  CHECK(integer("8_192") == 8192);
  CHECK(integer("1_000_000") == 1'000'000);
  CHECK(integer("9007199254740992") == std::int64_t{1} << 53);
}

TEST_CASE("what only looks like an integer is refused") {
  for (const std::string text :
       {"8.0", "1e3", "0x10", "0o17", "0b1", "+5", "1__0", "_1", "1_", "1 2", "eight", "'8'",
        "\"8\"", "true", "99999999999999999999", "[8]", "{}", "\xC3\xA9_\xC3\xA9"}) {
    CHECK_MESSAGE(contains(integer_error(text), "an integer from -1000000 to"), text);
  }
  CHECK(contains(integer_error("~"), "found nothing, an integer from"));
}

TEST_CASE("a number with a leading zero is ambiguous and both readings are named") {
  CHECK(contains(integer_error("010"), "ambiguous number '010': write 10 or 8"));
  CHECK(contains(integer_error("-010"), "ambiguous number '-010': write -10 or -8"));
  CHECK(contains(integer_error("0777"), "write 777 or 511"));  // 7 x 64 + 7 x 8 + 7
  CHECK(integer_error("089") == "x:1:1: k: ambiguous number '089': write 89");
  CHECK(integer_error("007") == "x:1:1: k: ambiguous number '007': write 7");
  CHECK(integer_error("00") == "x:1:1: k: ambiguous number '00': write 0");
  CHECK(contains(integer_error("0" + std::string(30, '7')), "ambiguous number"));  // over 64 bits
}

TEST_CASE("an integer outside its range is refused with the bound") {
  CHECK(integer("1", {1, 8}) == 1);
  CHECK(integer("8", {1, 8}) == 8);
  CHECK(integer_error("0", {1, 8}) == "x:1:1: k: found 0, must be at least 1");
  CHECK(integer_error("9", {1, 8}) == "x:1:1: k: found 9, must be at most 8");
}

TEST_CASE("a number may have a point and an exponent and must be finite") {
  CHECK(number("1.5") == 1.5);
  CHECK(number("-2") == -2);
  CHECK(number("1e-3") == 1e-3);
  CHECK(number("1_000.5") == 1000.5);
  for (const std::string text : {"inf", "-inf", "nan", ".inf", "1e999", "1,5", "1.5x", "true"}) {
    CHECK_MESSAGE(contains(number_error(text), "a finite number is wanted"), text);
  }
  CHECK(contains(number_error("'1.5'"), "a number is wanted"));
}

TEST_CASE("truth is true or false and nothing else") {
  for (const std::string text : {"true", "True"})
    CHECK(to_bool(parse_yaml(text, "x"), "k"));
  for (const std::string text : {"false", "False"})
    CHECK_FALSE(to_bool(parse_yaml(text, "x"), "k"));
  for (const std::string text : {"yes", "no", "on", "off", "1", "0", "'true'", "[true]"}) {
    CHECK_MESSAGE(contains(bool_error(text), "true or false is wanted"), text);
  }
}

TEST_CASE("a quantity takes its unit, quoted or not, and says what is wrong at its place") {
  CHECK(to_bytes(parse_yaml("80 GB", "x"), "k").value() == 80e9);
  CHECK(to_bandwidth(parse_yaml("'400 Gb/s'", "x"), "k").value() == 50e9);
  CHECK(to_seconds(parse_yaml("2 ms", "x"), "k").value() == doctest::Approx(2e-3));
  CHECK(to_flop_rate(parse_yaml("1 TFLOP/s", "x"), "k").value() == 1e12);
  CHECK(to_watts(parse_yaml("700 W", "x"), "k") == 700);
  CHECK(to_hertz(parse_yaml("1 GHz", "x"), "k") == 1e9);
  CHECK(contains(input_error([] { to_bytes(parse_yaml("a: 80", "x").entries[0].value, "a"); }),
                 "x:1:4: a: found '80', a unit is wanted"));
  CHECK(contains(input_error([] { to_bytes(parse_yaml("[80 GB]", "x"), "k"); }), "found a list"));
}

}  // namespace forerun

// Conditions on a forecast.

#include "study/require.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "report/report.hpp"
#include "tests/base/expect.hpp"
#include "tests/study/runs.hpp"

using namespace forerun;
using test::contains;

namespace {

const Forecast& forecast() {
  static const Forecast f = test::forecast_of(test::sixteen("execution: {compile: true}\n"));
  return f;
}

bool holds(const std::string& condition) {
  return forerun::holds(condition, forecast());
}

std::string refused(const std::string& condition) {
  return test::input_error([&] { holds(condition); });
}

}  // namespace

TEST_CASE("comparisons") {
  CHECK(holds("1 < 2"));
  CHECK(!holds("2 < 2"));
  CHECK(holds("2 <= 2"));
  CHECK(holds("3>2"));
  CHECK(!holds("2 > 2"));
  CHECK(holds("2 >= 2"));
  CHECK(holds("2 == 2.0"));
  CHECK(!holds("2 == 3"));
  CHECK(holds("2 != 3"));
  CHECK(!holds("2 != 2"));
  CHECK(holds("-1 < 1e-3"));
}

TEST_CASE("and binds more than or, not more than and, comparisons more than not") {
  CHECK(holds("true || false && false"));  // (true || false) && false would not hold
  CHECK(!holds("(true || false) && false"));
  CHECK(holds("false && false || true"));
  CHECK(holds("!false && true"));
  CHECK(!holds("!(true || false)"));
  CHECK(holds("!false || true"));
  CHECK(!holds("!1 < 2"));  // (!1) < 2 would hold
  CHECK(holds("!!true"));
  CHECK(holds("1 < 2 && 3 < 4 || 1 > 2"));
}

TEST_CASE("every number of the forecast's document is a name, with the same value") {
  REQUIRE(forecast().metrics.fits);
  const auto document = nlohmann::json::parse(forecast_json(forecast()));
  int names = 0;
  for (const auto& [key, value] : document.items()) {
    if (!value.is_number_float()) continue;
    CAPTURE(key);
    const std::string number = value.dump();  // the shortest text that reads back exactly
    CHECK_NOTHROW(CHECK(holds(key + " == " + number)));
    ++names;
  }
  CHECK(names >= 20);
  CHECK(holds("fits"));
  CHECK(holds("fits == true"));
  CHECK(!holds("fits == false"));
}

TEST_CASE("what is no condition is refused at its column") {
  CHECK(contains(refused("mfu >"), "--require:1:6: 'mfu >': a name or a number is wanted"));
  CHECK(contains(refused(""), "--require:1:1: '': a name or a number is wanted"));
  CHECK(contains(refused("fits && mfuu > 0.4"), "--require:1:9:"));
  CHECK(contains(refused("fits && mfuu > 0.4"), "unknown name 'mfuu' (did you mean 'mfu'?)"));
  CHECK(contains(refused("(fits && mfu > 0.4"), "--require:1:19:"));
  CHECK(contains(refused("(fits && mfu > 0.4"), "a closing parenthesis is wanted"));
  CHECK(contains(refused("fits mfu"), "--require:1:6: 'fits mfu': what follows"));
  CHECK(contains(refused("1 < 2 < 3"), "--require:1:7:"));
  CHECK(contains(refused("fits & mfu"), "what follows is not understood"));
  CHECK(contains(refused("fits = 1"), "what follows is not understood"));
  CHECK(contains(refused("mfu > 40%"), "what follows is not understood"));
  CHECK(contains(refused("!="), "a name or a number is wanted"));
}

TEST_CASE("a word that only begins like a number is a name, and none is not a number") {
  CHECK(contains(refused("information > 1"), "unknown name 'information'"));
  CHECK(contains(refused("nan"), "unknown name 'nan'"));
  CHECK(contains(refused("mfu < inf"), "unknown name 'inf'"));
  CHECK(contains(refused("mfu < 1e999"), "1e999"));
}

TEST_CASE("nesting has an end") {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '(') + "1" +
           std::string(static_cast<std::size_t>(depth), ')');
  };
  CHECK(holds(nested(64)));
  CHECK(contains(refused(nested(65)), "nested too deeply"));
  CHECK(contains(refused(std::string(100000, '!') + "1"), "nested too deeply"));
  CHECK(holds(std::string(64, '!') + "1"));
}

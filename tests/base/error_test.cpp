#include "base/error.hpp"

#include <doctest/doctest.h>

#include <string>
#include <type_traits>

#include "base/contract.hpp"

namespace forerun {

// The three kinds of failure are told apart by their type alone.
static_assert(!std::is_base_of_v<InputError, Unsupported>);
static_assert(!std::is_base_of_v<Unsupported, InputError>);
static_assert(!std::is_base_of_v<std::runtime_error, Bug>);

TEST_CASE("a place says what is known of it") {
  CHECK(Place{"run.yaml", 3, 14}.text() == "run.yaml:3:14");
  CHECK(Place{"run.yaml", 3, 0}.text() == "run.yaml:3");
  CHECK(Place{"run.yaml", 0, 14}.text() == "run.yaml");
  CHECK(Place{"--set", 0, 0}.text() == "--set");
  CHECK(Place{}.text().empty());
}

TEST_CASE("an input error says place, key and problem, and keeps each apart") {
  const InputError error({"run.yaml", 3, 14}, "parallelism.tp", "found 3");
  CHECK(std::string(error.what()) == "run.yaml:3:14: parallelism.tp: found 3");
  CHECK(error.place().line == 3);
  CHECK(error.key() == "parallelism.tp");
  CHECK(error.problem() == "found 3");
  CHECK(std::string(InputError({}, "", "found 3").what()) == "found 3");
  CHECK(std::string(InputError({}, "tp", "found 3").what()) == "tp: found 3");
}

TEST_CASE("what is not modelled begins with the word unsupported") {
  CHECK(std::string(Unsupported("schedule zbv").what()) == "unsupported: schedule zbv");
}

TEST_CASE("a broken contract names its condition and place") {
  const int two = 2;
  CHECK_NOTHROW(FR_ASSERT(two == 2));
  std::string message;
  try {
    FR_ASSERT(two == 3);
  } catch (const Bug& bug) {
    message = bug.what();
  }
  CHECK(message.find("error_test.cpp:") != std::string::npos);
  CHECK(message.find("two == 3") != std::string::npos);
}

}  // namespace forerun

#include <doctest/doctest.h>

#include "model/schedules/generators.hpp"
#include "tests/model/schedules/reference.hpp"

using namespace forerun;

TEST_CASE("gpipe runs all forwards, then all backwards, on every rank") {
  for (const int ranks : {1, 2, 4}) {
    for (const std::int64_t m : {1, 2, 7}) {
      for (int rank = 0; rank < ranks; ++rank) {
        const RankOrder order = gpipe().order(test::request(ranks, 1, m), rank);
        CHECK(order == test::gpipe(m));
        CHECK(test::complete(order, 1, m));
        CHECK(test::most_in_flight(order) == m);
      }
    }
  }
}

TEST_CASE("gpipe has no steady cycle and no virtual stages") {
  CHECK(gpipe().stride(test::request(4, 1, 16)) == 0);
  CHECK(gpipe().refusal(test::request(4, 1, 16)).empty());
  CHECK(!gpipe().refusal(test::request(4, 2, 16)).empty());
}

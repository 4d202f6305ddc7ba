#include <doctest/doctest.h>

#include "model/schedules/generators.hpp"
#include "tests/model/schedules/reference.hpp"

using namespace forerun;

TEST_CASE("1f1b is what a limit of as many microbatches as stages below makes of a rank") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const std::int64_t m : {1, 2, 3, 4, 5, 8, 21}) {
      std::vector<std::vector<Action>> all;
      for (int rank = 0; rank < ranks; ++rank) {
        CAPTURE(rank);
        const RankOrder order = one_f_one_b().order(test::request(ranks, 1, m), rank);
        CHECK(order == test::one_f_one_b(ranks, rank, m));
        CHECK(test::complete(order, 1, m));
        CHECK(test::most_in_flight(order) == std::min<std::int64_t>(m, ranks - rank));
        all.push_back(order);
      }
      CHECK(test::ends(all, 1));
    }
  }
}

TEST_CASE("the last rank of 1f1b alternates and the first warms up") {
  // Four ranks and five microbatches, as in figure 4 of arXiv 2104.04473.
  const auto letters = [](int rank) {
    std::string text;
    for (const Action& a : one_f_one_b().order(test::request(4, 1, 5), rank)) {
      text += is_forward(a.kind) ? 'F' : 'B';
      text += std::to_string(a.microbatch + 1);
    }
    return text;
  };
  CHECK(letters(3) == "F1B1F2B2F3B3F4B4F5B5");
  CHECK(letters(0) == "F1F2F3F4B1F5B2B3B4B5");
}

TEST_CASE("1f1b runs one virtual stage a rank") {
  CHECK(one_f_one_b().refusal(test::request(4, 1, 3)).empty());
  CHECK(!one_f_one_b().refusal(test::request(4, 2, 8)).empty());
}

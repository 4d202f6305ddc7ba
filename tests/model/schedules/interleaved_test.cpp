#include <doctest/doctest.h>

#include "model/schedules/generators.hpp"
#include "tests/model/schedules/reference.hpp"

using namespace forerun;

namespace {

/// Microbatches of PyTorch's round: M / max(1, M / P), whole numbers (ScheduleInterleaved1F1B).
std::int64_t round_of(int ranks, std::int64_t m) {
  return m / std::max<std::int64_t>(1, m / ranks);
}

}  // namespace

TEST_CASE("interleaved 1f1b is what its limit of chunks in flight makes of a rank") {
  for (const int ranks : {2, 3, 4, 8}) {
    for (const int chunks : {1, 2, 3, 4}) {
      for (const std::int64_t m : {1, 2, 3, 4, 5, 6, 8, 10, 16, 24}) {
        const ScheduleRequest request = test::request(ranks, chunks, m);
        if (!interleaved().refusal(request).empty()) continue;
        std::vector<std::vector<Action>> all;
        for (int rank = 0; rank < ranks; ++rank) {
          CAPTURE(rank);
          const RankOrder order = interleaved().order(request, rank);
          CHECK(order == test::interleaved(ranks, rank, chunks, m, round_of(ranks, m)));
          CHECK(test::complete(order, chunks, m));
          all.push_back(order);
        }
        CHECK(test::ends(all, chunks));
      }
    }
  }
}

TEST_CASE("the first rank of interleaved 1f1b holds P V + P - 1 chunks") {
  // 2 (P - 1) + (V - 1) P + 1: more than 1f1b's P by (P - 1) / (P V), which is the memory factor
  // 1 + (P - 1) / (P V) of Korthikanti et al. (arXiv 2205.05198, section 4.2.3).
  for (const int ranks : {2, 4, 8}) {
    for (const int chunks : {1, 2, 4}) {
      const RankOrder order = interleaved().order(test::request(ranks, chunks, 4 * ranks), 0);
      CHECK(test::most_in_flight(order) == ranks * chunks + ranks - 1);
    }
  }
}

TEST_CASE("a round goes through the chunks forward and backward the other way") {
  // Two ranks, two chunks, four microbatches, rank 0: a letter a chunk, large forward.
  std::string text;
  for (const Action& a : interleaved().order(test::request(2, 2, 4), 0)) {
    text += static_cast<char>((is_forward(a.kind) ? 'A' : 'a') + a.chunk);
    text += std::to_string(a.microbatch + 1);
  }
  // Warm-up (V - 1) 2 + 2 = 4 forwards; then the forwards of round two beside the backwards of one.
  CHECK(text ==
        "A1A2B1B2"
        "A3b1A4b2B3a1B4a2"
        "b3b4a3a4");
}

TEST_CASE("microbatches that do not come in equal rounds are refused") {
  CHECK(interleaved().refusal(test::request(4, 2, 8)).empty());
  CHECK(interleaved().refusal(test::request(4, 2, 6)).empty());   // one round of six
  CHECK(interleaved().refusal(test::request(4, 2, 10)).empty());  // two rounds of five
  CHECK(!interleaved().refusal(test::request(4, 2, 9)).empty());  // 9 in two rounds
  CHECK(interleaved().stride(test::request(4, 2, 10)) == 5);
}

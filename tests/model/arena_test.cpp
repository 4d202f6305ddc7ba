#include "model/arena.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/contract.hpp"

using namespace forerun;

namespace {

/// Best fit written plainly: a map of what lives, from which every gap is found anew.
class NaiveArena {
 public:
  std::int64_t allocate(std::int64_t bytes) {
    std::int64_t at = 0, best = -1, best_size = 0;
    for (const auto& [begin, size] : live_) {
      const std::int64_t gap = begin - at;
      if (gap >= bytes && (best < 0 || gap < best_size)) {
        best = at;
        best_size = gap;
      }
      at = begin + size;
    }
    const std::int64_t begin = best >= 0 ? best : at;
    live_[begin] = bytes;
    return begin;
  }
  void free(std::int64_t begin) { live_.erase(begin); }

  [[nodiscard]] std::int64_t extent() const {
    return live_.empty() ? 0 : live_.rbegin()->first + live_.rbegin()->second;
  }
  [[nodiscard]] std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const auto& [begin, size] : live_)
      sum += size;
    return sum;
  }

 private:
  std::map<std::int64_t, std::int64_t> live_;  // begin to size
};

}  // namespace

TEST_CASE("an arena grows at its end and shrinks to the last live piece") {
  Arena arena;
  CHECK(arena.extent() == 0);
  const auto a = arena.allocate(10), b = arena.allocate(20), c = arena.allocate(30);
  CHECK(a == 0);
  CHECK(b == 10);
  CHECK(c == 30);
  CHECK(arena.extent() == 60);
  arena.free(b);
  CHECK(arena.extent() == 60);  // a hole below a live piece is held
  arena.free(c);
  CHECK(arena.extent() == 10);  // the hole goes with what was above it
  arena.free(a);
  CHECK(arena.extent() == 0);
}

TEST_CASE("a hole is split and its rest is used") {
  Arena arena;
  const auto hole = arena.allocate(100);
  arena.allocate(1);
  arena.free(hole);
  CHECK(arena.allocate(60) == 0);
  CHECK(arena.allocate(40) == 60);  // what was left, exactly
  CHECK(arena.allocate(1) == 101);  // nothing is left
}

TEST_CASE("the smallest hole that fits is taken, of equal ones the lowest") {
  Arena arena;
  const auto big = arena.allocate(50);
  arena.allocate(1);
  const auto small = arena.allocate(20);
  arena.allocate(1);
  const auto twin = arena.allocate(20);
  arena.allocate(1);
  arena.free(big);
  arena.free(small);
  arena.free(twin);
  CHECK(arena.allocate(15) == small);
  CHECK(arena.allocate(20) == twin);
  CHECK(arena.allocate(20) == big);
}

TEST_CASE("neighbouring holes become one") {
  Arena arena;
  const auto a = arena.allocate(10), b = arena.allocate(10), c = arena.allocate(10);
  arena.allocate(1);
  arena.free(a);
  arena.free(c);
  arena.free(b);  // joins both sides
  CHECK(arena.allocate(30) == 0);
  CHECK(arena.extent() == 31);
}

TEST_CASE("a tensor that no hole takes makes the arena hold more than lives") {
  Arena arena;
  const auto a = arena.allocate(10);
  arena.allocate(10);
  arena.free(a);
  arena.allocate(11);
  CHECK(arena.extent() == 31);  // 21 live, and the hole of 10
}

TEST_CASE("freeing what does not live is a fault") {
  Arena arena;
  const auto a = arena.allocate(10);
  arena.allocate(10);
  CHECK_THROWS_AS(arena.free(5), Bug);
  arena.free(a);
  CHECK_THROWS_AS(arena.free(a), Bug);
}

TEST_CASE("an arena does as plain best fit over any sequence") {
  std::mt19937 random(11);
  for (int sequence = 0; sequence < 50; ++sequence) {
    Arena arena;
    NaiveArena naive;
    std::vector<std::int64_t> live;
    bool same = true, holds_all = true;
    for (int step = 0; step < 400; ++step) {
      if (live.empty() || random() % 5 < 3) {
        const auto bytes = static_cast<std::int64_t>(1 + random() % 40);
        live.push_back(naive.allocate(bytes));
        same &= arena.allocate(bytes) == live.back();
      } else {
        std::swap(live[random() % live.size()], live.back());
        naive.free(live.back());
        arena.free(live.back());
        live.pop_back();
      }
      same &= arena.extent() == naive.extent();
      holds_all &= arena.extent() >= naive.bytes();
    }
    CHECK(same);
    CHECK(holds_all);
  }
}

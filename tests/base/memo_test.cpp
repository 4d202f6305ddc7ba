#include "base/memo.hpp"

#include <doctest/doctest.h>

#include <set>
#include <vector>

namespace forerun {
namespace {

struct Key {
  int a = 0;
  int b = 0;
  bool operator==(const Key&) const = default;
  [[nodiscard]] std::size_t hash() const { return hash_of(a, b); }
};

/// All keys fall into one bucket.
struct CollidingKey {
  int a = 0;
  bool operator==(const CollidingKey&) const = default;
  [[nodiscard]] std::size_t hash() const { return 7; }
};

}  // namespace

TEST_CASE("a value is made once and found again") {
  Memo<Key, int> memo;
  int made = 0;
  const auto sum = [&](Key key) {
    return memo.find_or_make(key, [&] {
      ++made;
      return key.a * 100 + key.b;
    });
  };
  CHECK(sum({1, 2}) == 102);
  CHECK(sum({1, 2}) == 102);  // the last one
  CHECK(sum({2, 1}) == 201);
  CHECK(sum({1, 2}) == 102);  // an earlier one
  CHECK(made == 2);
  CHECK(memo.size() == 2);
}

TEST_CASE("values stay where they are while others are added") {
  Memo<Key, int> memo;
  std::vector<int*> places;
  for (int i = 0; i < 10000; ++i)
    places.push_back(&memo.find_or_make({i, -i}, [&] { return i; }));
  for (int i = 0; i < 10000; ++i) {
    const auto unmade = [] { return -1; };
    CHECK(&memo.find_or_make({i, -i}, unmade) == places[static_cast<std::size_t>(i)]);
    CHECK(*places[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("keys with one hash are told apart") {
  Memo<CollidingKey, int> memo;
  for (int i = 0; i < 50; ++i)
    memo.find_or_make({i}, [&] { return i; });
  for (int i = 0; i < 50; ++i)
    CHECK(memo.find_or_make({i}, [] { return -1; }) == i);
}

TEST_CASE("a value that cannot be made leaves nothing behind") {
  Memo<Key, int> memo;
  CHECK_THROWS_AS(memo.find_or_make({1, 1}, []() -> int { throw 5; }), int);
  CHECK(memo.size() == 0);
  CHECK(memo.find_or_make({1, 1}, [] { return 4; }) == 4);
}

TEST_CASE("the hash depends on the order of its parts and spreads small integers") {
  CHECK(hash_of(1, 2) != hash_of(2, 1));
  CHECK(hash_of(0) != hash_of(0, 0));
  std::set<std::size_t> low_bits;
  for (int a = 0; a < 32; ++a) {
    for (int b = 0; b < 32; ++b)
      low_bits.insert(hash_of(a, b) % 65536);
  }
  // 1024 keys over 65536 buckets: about 8 pairs collide by chance (1024^2 / 2 / 65536).
  CHECK(low_bits.size() > 1024 - 40);
}

}  // namespace forerun

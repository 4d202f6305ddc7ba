#include "model/engine/linear_map.hpp"

#include <doctest/doctest.h>

#include "tests/model/engine/random_blocks.hpp"

using namespace forerun;

namespace {

/// A few blocks without interference and their maps.
struct Linear {
  explicit Linear(std::uint64_t seed) : random(seed) {}

  const Block& block() { return pool[pool.add(random.block(false))]; }
  LinearMap map() { return LinearMap::of(block()); }

  test::RandomBlocks random;
  ProgramPool pool;
};

bool same(const LinearMap& a, const LinearMap& b) {
  for (int from = 0; from < kSlots; ++from) {
    for (int to = 0; to < kSlots; ++to) {
      if (a.weight(from, to) != b.weight(from, to)) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("the weights of a block are its longest paths") {
  // A gather of 6 on fsdp, issued at 1, then a product of 3 that waits for it, issued at 2.
  BlockDraft draft;
  Operation gather, product;
  gather.stream = static_cast<std::int8_t>(slot_of(Stream::kFsdp));
  gather.seconds = 6;
  gather.issued_at = 1;
  product.stream = static_cast<std::int8_t>(slot_of(Stream::kCompute));
  product.seconds = 3;
  product.issued_at = 2;
  product.after.push_back(0);
  draft.operations = {gather, product};
  draft.host_seconds = 2;
  ProgramPool pool;
  const LinearMap map = LinearMap::of(pool[pool.add(draft)]);
  const int host = slot_of(Stream::kHost), compute = slot_of(Stream::kCompute),
            fsdp = slot_of(Stream::kFsdp), tensor = slot_of(Stream::kTensor);
  CHECK(map.weight(host, host) == 2);
  CHECK(map.weight(host, fsdp) == 1 + 6);
  CHECK(map.weight(host, compute) == 1 + 6 + 3);  // longer than 2 + 3
  CHECK(map.weight(fsdp, compute) == 6 + 3);
  CHECK(map.weight(compute, compute) == 3);
  CHECK(map.weight(compute, fsdp) < -1e300);  // no path
  CHECK(map.weight(tensor, tensor) == 0);     // handed on
}

TEST_CASE("the map of a block does what running it does") {
  Linear linear(31);
  for (int trial = 0; trial < 300; ++trial) {
    const Block& block = linear.block();
    const LinearMap map = LinearMap::of(block);
    BlockRunner runner(RateTable{});
    for (int i = 0; i < 10; ++i) {
      RankState state = linear.random.state();
      const LinearMap::Times mapped = map(state.at);
      runner.run(block, state);
      REQUIRE(mapped == state.at);
    }
  }
}

TEST_CASE("maps one after the other are one map, in any grouping") {
  Linear linear(32);
  for (int trial = 0; trial < 200; ++trial) {
    const LinearMap a = linear.map(), b = linear.map(), c = linear.map();
    const LinearMap left = a.then(b).then(c), right = a.then(b.then(c));
    REQUIRE(same(left, right));
    const LinearMap::Times before = linear.random.state().at;
    REQUIRE(left(before) == c(b(a(before))));
  }
}

TEST_CASE("the identity changes nothing, before or behind") {
  Linear linear(33);
  const LinearMap identity;
  for (int trial = 0; trial < 50; ++trial) {
    const LinearMap map = linear.map();
    CHECK(same(identity.then(map), map));
    CHECK(same(map.then(identity), map));
    const LinearMap::Times before = linear.random.state().at;
    CHECK(identity(before) == before);
  }
}

TEST_CASE("a map to a power is the map as many times") {
  Linear linear(34);
  for (int trial = 0; trial < 50; ++trial) {
    const LinearMap once = linear.map();
    LinearMap product;
    for (std::int64_t times = 0; times <= 20; ++times) {
      REQUIRE(same(once.repeated(times), product));
      product = product.then(once);
    }
  }
}

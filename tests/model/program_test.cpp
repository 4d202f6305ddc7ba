#include "model/program.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using namespace forerun;

namespace {

/// Net change and highest prefix of a list of changes, by walking it.
MemoryPair walked(const std::vector<std::int64_t>& changes) {
  MemoryPair out;
  for (const std::int64_t bytes : changes) {
    out.net += bytes;
    out.peak = std::max(out.peak, out.net);
  }
  return out;
}

std::vector<std::int64_t> some_changes(std::mt19937& random) {
  std::vector<std::int64_t> changes(random() % 6);
  for (std::int64_t& c : changes)
    c = static_cast<std::int64_t>(random() % 21) - 10;
  return changes;
}

std::vector<std::int64_t> joined(std::vector<std::int64_t> a, const std::vector<std::int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("pairs of memory changes combine as the changes do") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 500; ++trial) {
    const auto a = some_changes(random), b = some_changes(random), c = some_changes(random);
    CHECK(walked(a) + walked(b) == walked(joined(a, b)));
    CHECK((walked(a) + walked(b)) + walked(c) == walked(a) + (walked(b) + walked(c)));
    CHECK(walked(a) + MemoryPair{} == walked(a));
  }
}

TEST_CASE("a repeated pair is the sum of as many") {
  std::mt19937 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    const MemoryPair once = walked(some_changes(random));
    MemoryPair sum;
    for (std::int64_t n = 0; n < 8; ++n) {
      CHECK(once.repeated(n) == sum);
      sum = sum + once;
    }
  }
}

TEST_CASE("a pool's peak is its own and the total's is that of all together") {
  // The gathering pool reaches 5 before the compute pool reaches 7: together never more than 7.
  BlockDraft draft;
  draft.events = {{MemoryPool::kGather, MemoryComponent::kGathered, 5, 5},
                  {MemoryPool::kGather, MemoryComponent::kGathered, -5, -5},
                  {MemoryPool::kCompute, MemoryComponent::kTemporaries, 7, 9},
                  {MemoryPool::kCompute, MemoryComponent::kTemporaries, -7, -9}};
  ProgramPool pool;
  const MemoryFold& fold = pool[pool.add(draft)].memory;
  CHECK(fold.all == MemoryPair{0, 7});
  CHECK(fold.pool[static_cast<std::size_t>(MemoryPool::kGather)] == MemoryPair{0, 5});
  CHECK(fold.pool[static_cast<std::size_t>(MemoryPool::kCompute)] == MemoryPair{0, 9});
  CHECK(fold.repeated(3) == fold + fold + fold);
}

TEST_CASE("what lies in a pool of programs does not move") {
  ProgramPool pool;
  BlockDraft draft;
  draft.name = "first";
  draft.operations.resize(3);
  draft.operations[1].seconds = 2;
  const BlockId first = pool.add(draft);
  const ChainId chain = pool.add(Chain(ChainDraft{{first, 4}}));
  const Block* block = &pool[first];
  const Operation* operations = block->operations.data();
  draft.operations[1].seconds = 7;  // the draft is used again
  for (int i = 0; i < 1000; ++i)
    pool.add(draft);
  CHECK(&pool[first] == block);
  CHECK(pool[first].operations.data() == operations);
  CHECK(pool[first].operations[1].seconds == 2);
  CHECK(pool[chain][0].count == 4);
  CHECK(pool.blocks() == 1001);
}

TEST_CASE("kernels run at full rate beside collectives unless a table says otherwise") {
  RateTable rates;
  CHECK(rates.rate(KernelFamily::kGemm, CollectiveKind::kAllGather) == 1);
  CHECK(rates == RateTable{});
}

#include "model/engine/block_run.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/model/engine/random_blocks.hpp"

using namespace forerun;

namespace {

constexpr auto kCompute = static_cast<std::int8_t>(slot_of(Stream::kCompute));
constexpr auto kFsdp = static_cast<std::int8_t>(slot_of(Stream::kFsdp));
constexpr auto kEvent = static_cast<std::int8_t>(slot_of(Event::kGathered));

Operation kernel(double seconds, double issued_at = 0) {
  Operation op;
  op.stream = kCompute;
  op.family = KernelFamily::kGemm;
  op.seconds = seconds;
  op.issued_at = issued_at;
  return op;
}

Operation collective(double seconds, double issued_at = 0) {
  Operation op = kernel(seconds, issued_at);
  op.stream = kFsdp;
  op.family = KernelFamily::kCollective;
  op.collective = CollectiveKind::kAllGather;
  op.slows = true;
  return op;
}

/// The state after one block, from a state of zeros.
RankState after(std::vector<Operation> operations, double host_seconds = 0) {
  ProgramPool pool;
  BlockDraft draft;
  draft.operations = std::move(operations);
  draft.host_seconds = host_seconds;
  RankState state;
  BlockRunner(test::slow_rates()).run(pool[pool.add(draft)], state);
  return state;
}

double compute_after(std::vector<Operation> operations) {
  return after(std::move(operations))[Stream::kCompute];
}

}  // namespace

TEST_CASE("operations of a stream run in order, not before the host has issued them") {
  CHECK(compute_after({kernel(3), kernel(4)}) == 7);
  CHECK(compute_after({kernel(3), kernel(4, 5)}) == 9);
}

TEST_CASE("an operation waits for the end of others and for events") {
  Operation late = kernel(1);
  late.after.push_back(0);
  CHECK(compute_after({collective(6), late}) == 7);

  Operation recorder = collective(6);
  recorder.records = kEvent;
  Operation waiter = kernel(1);
  waiter.waits.push_back(kEvent);
  CHECK(compute_after({recorder, waiter}) == 7);
  CHECK(compute_after({waiter, recorder}) == 1);  // the event is still the old one, at 0
}

TEST_CASE("the host goes on by the whole block, whatever the device does") {
  const RankState state = after({kernel(10, 2)}, 3);
  CHECK(state[Stream::kHost] == 3);
  CHECK(state[Stream::kCompute] == 12);
}

TEST_CASE("a marker takes no stream") {
  Operation marker;
  marker.issued_at = 4;
  marker.records = kEvent;
  const RankState state = after({kernel(10), marker});
  CHECK(state.at[static_cast<std::size_t>(kEvent)] == 4);
}

TEST_CASE("a kernel runs slower while a collective before it runs") {
  // A product at half rate beside the collective. The collective runs from 4 to 8: 4 s of work
  // before, 2 s beside, 4 s behind: 12 s.
  CHECK(compute_after({collective(4, 4), kernel(10)}) == 12);
  CHECK(compute_after({collective(4), kernel(10)}) == 12);   // from 0 to 4: 2 s beside, 8 s behind
  CHECK(compute_after({collective(40), kernel(10)}) == 20);  // all of it beside
}

TEST_CASE("collectives that run together slow by the product of their rates") {
  Operation second = collective(4);
  second.stream = static_cast<std::int8_t>(slot_of(Stream::kTensor));
  // Both from 0 to 4 at a quarter: 1 s of work; 9 s behind: 13 s.
  CHECK(compute_after({collective(4), second, kernel(10)}) == 13);
}

TEST_CASE("a collective that stands behind a kernel in program order does not slow it") {
  CHECK(compute_after({kernel(10), collective(4)}) == 10);
  Operation quiet = collective(4);
  quiet.slows = false;
  CHECK(compute_after({quiet, kernel(10)}) == 10);
}

TEST_CASE("collectives are forgotten when the compute stream is past them") {
  CHECK(after({collective(4), kernel(10)}).running.empty());
  CHECK(after({collective(40), kernel(10)}).running.size() == 1);
  // Back to back, of one kind: one interval.
  CHECK(after({collective(20), collective(20), kernel(10)}).running.size() == 1);
}

TEST_CASE("where the time of a slot was spent adds up to its time") {
  test::RandomBlocks random(21);
  const RateTable rates = test::slow_rates();
  for (int trial = 0; trial < 200; ++trial) {
    ProgramPool pool;
    BlockRunner followed(rates), plain(rates);
    RankState state, same;
    SlotBreakdowns spent{};
    for (int i = 0; i < 5; ++i) {
      const Block& block = pool[pool.add(random.block(true))];
      followed.run(block, state, spent);
      plain.run(block, same);
    }
    CHECK(state.at == same.at);
    for (std::size_t s = 0; s < spent.size(); ++s) {
      const double sum = std::accumulate(spent[s].begin(), spent[s].end(), 0.0);
      CHECK(test::close(sum, state.at[s]));
    }
  }
}

TEST_CASE("the path to a kernel is charged to what it waited for") {
  // The product waits 6 s for the gather and is not slowed by it: 6 s exposed, then 3 s of product.
  ProgramPool pool;
  BlockDraft draft;
  Operation gather = collective(6), product = kernel(3);
  gather.category = Category::kExposedDp;
  product.category = Category::kGemm;
  product.after.push_back(0);
  draft.operations = {gather, product};
  RankState state;
  SlotBreakdowns spent{};
  BlockRunner(test::slow_rates()).run(pool[pool.add(draft)], state, spent);
  const Breakdown& path = spent[static_cast<std::size_t>(kCompute)];
  CHECK(path[static_cast<std::size_t>(Category::kExposedDp)] == 6);
  CHECK(path[static_cast<std::size_t>(Category::kGemm)] == 3);
}

TEST_CASE("what a collective costs a kernel beside it is interference") {
  ProgramPool pool;
  BlockDraft draft;
  draft.operations = {collective(40), kernel(10)};  // 10 s of work in 20 s
  draft.operations[1].category = Category::kGemm;
  RankState state;
  SlotBreakdowns spent{};
  BlockRunner(test::slow_rates()).run(pool[pool.add(draft)], state, spent);
  const Breakdown& path = spent[static_cast<std::size_t>(kCompute)];
  CHECK(path[static_cast<std::size_t>(Category::kGemm)] == 10);
  CHECK(path[static_cast<std::size_t>(Category::kInterference)] == 10);
}

// The event engine on programs small enough to follow by hand.

#include "sim/engine.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/sim/hand_program.hpp"

using namespace forerun;
using test::HandProgram;
using test::kernel;

namespace {

constexpr std::size_t kAll = 1;

Operation gather(double seconds) {
  Operation op;
  op.name = "gather";
  op.stream = static_cast<std::int8_t>(slot_of(Stream::kFsdp));
  op.family = KernelFamily::kCollective;
  op.collective = CollectiveKind::kAllGather;
  op.seconds = seconds;
  return op;
}

/// Ends of one block on one rank, run once.
double step_of(const BlockDraft& draft, const RateTable& rates = {}) {
  HandProgram p(kAll);
  p.does(0, ActionKind::kForwardFirst, draft);
  p.order(0, {{ActionKind::kForwardFirst, 0, 0}});
  p.program.rates = rates;
  return simulate(p.program).step_seconds;
}

}  // namespace

TEST_CASE("streams run beside each other and edges hold them") {
  BlockDraft draft;
  draft.operations = {gather(3), kernel(5)};
  CHECK(step_of(draft) == 5);  // 0..3 beside 0..5
  draft.operations[1].after = {0};
  CHECK(step_of(draft) == 8);  // 0..3, then 3..8
}

TEST_CASE("nothing starts before the host has issued it, and the host may end last") {
  BlockDraft draft;
  draft.operations = {kernel(1), kernel(1)};
  draft.operations[0].issued_at = 2;
  draft.operations[1].issued_at = 6;
  draft.host_seconds = 6;
  CHECK(step_of(draft) == 7);  // 2..3, 6..7
  draft.host_seconds = 9;
  CHECK(step_of(draft) == 9);
}

TEST_CASE("an event that one block records holds a later block") {
  BlockDraft first, second;
  first.operations = {gather(4)};
  first.operations[0].records = static_cast<std::int8_t>(slot_of(Event::kGathered));
  second.operations = {kernel(2)};
  second.operations[0].waits = {static_cast<std::int8_t>(slot_of(Event::kGathered))};
  HandProgram p(kAll);
  p.does(0, ActionKind::kForwardFirst, first);
  p.does(0, ActionKind::kBackwardOnly, second);
  p.order(0, {{ActionKind::kForwardFirst, 0, 0}, {ActionKind::kBackwardOnly, 0, 0}});
  CHECK(simulate(p.program).step_seconds == 6);
}

TEST_CASE("a kernel is slowed beside a collective that stands before it, and only while it runs") {
  RateTable rates;
  rates.rates[static_cast<std::size_t>(KernelFamily::kGemm)].fill(0.5);
  BlockDraft draft;
  draft.operations = {gather(3), kernel(4)};
  draft.operations[0].slows = true;
  CHECK(step_of(draft, rates) == 5.5);  // 1.5 s of work done at 3 s, 2.5 s left at full rate
  CHECK(step_of(draft) == 4);
  std::swap(draft.operations[0], draft.operations[1]);  // the collective stands behind
  CHECK(step_of(draft, rates) == 4);
}

TEST_CASE("blocks repeat as often as their chain says") {
  BlockDraft draft;
  draft.operations = {kernel(2)};
  HandProgram p(kAll);
  p.does(0, ActionKind::kForwardFirst, draft, 5);
  p.order(0, {{ActionKind::kForwardFirst, 0, 0}});
  CHECK(simulate(p.program).step_seconds == 10);
}

TEST_CASE("memory rises and falls in the order of issue, in all and by pool") {
  BlockDraft draft;
  draft.operations = {kernel(1)};
  draft.events = {{MemoryPool::kCompute, MemoryComponent::kTemporaries, 10, 12},
                  {MemoryPool::kGather, MemoryComponent::kGathered, 5, 5},
                  {MemoryPool::kCompute, MemoryComponent::kTemporaries, -7, -8}};
  HandProgram p(kAll);
  p.does(0, ActionKind::kForwardFirst, draft, 2);
  p.order(0, {{ActionKind::kForwardFirst, 0, 0}});
  const MemoryFold memory = simulate(p.program).memory.at(0);
  CHECK(memory.all == MemoryPair{16, 23});  // 10 15 8, then 18 23 16
  CHECK(memory.pool[static_cast<std::size_t>(MemoryPool::kCompute)] == MemoryPair{8, 16});
  CHECK(memory.pool[static_cast<std::size_t>(MemoryPool::kGather)] == MemoryPair{10, 10});
}

TEST_CASE("two stages pass activations on, gradients back and meet before the optimizer") {
  const SimResult r = simulate(test::two_stages().program);
  // Forward 0..2, message to 3, forward 3..6, backward 6..10, message to 11, backward 11..16;
  // the norm is reduced in 0.5 s after both, the optimizers take 1 and 2 s.
  CHECK(r.step_seconds == 18.5);
  CHECK(r.rank_end == std::vector<double>{17.5, 18.5});
  CHECK(r.stage_end == std::vector<double>{16, 11});  // stage 1 ends with its message
  CHECK(r.memory.size() == 2);
}

TEST_CASE("a sender that blocks waits for its message") {
  HandProgram p(2);
  BlockDraft draft;
  draft.operations = {kernel(2)};
  p.does(0, ActionKind::kForward, draft);
  p.order(0, {{ActionKind::kForward, 0, 0}, {ActionKind::kForward, 0, 1}});
  p.order(1, {{ActionKind::kForward, 0, 0}, {ActionKind::kForward, 0, 1}});
  p.program.message_seconds = 3;
  CHECK(simulate(p.program).step_seconds == 8);  // sends 2..5 and 5..8, one after the other
  p.program.blocking_sends = true;
  CHECK(simulate(p.program).step_seconds == 10);  // kernels 0..2 and 5..7, send 7..10
}

TEST_CASE("the same program gives the same events, another program others") {
  const SimResult once = simulate(test::two_stages().program);
  const SimResult again = simulate(test::two_stages().program);
  CHECK(once.fingerprint == again.fingerprint);
  CHECK(once.events == again.events);
  HandProgram other = test::two_stages();
  other.program.sync_seconds = 0.25;
  CHECK(simulate(other.program).fingerprint != once.fingerprint);
}

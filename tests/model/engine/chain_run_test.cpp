// Folded chains against the same turns one by one.

#include "model/engine/chain_run.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/model/engine/random_blocks.hpp"

using namespace forerun;

namespace {

/// A chain of one block, repeated.
struct Repeated {
  Repeated(const BlockDraft& draft, std::int64_t count)
      : links{{pool.add(draft), count}}, chain(pool[pool.add(Chain(links))]) {}
  ProgramPool pool;
  ChainDraft links;
  Chain chain;
};

constexpr std::int64_t kCounts[] = {0, 1, 2, 3, 4, 5, 6, 7, 20, 125, 126};

}  // namespace

TEST_CASE("folded turns end where turns one by one end") {
  test::RandomBlocks random(41);
  const RateTable rates = test::slow_rates();
  for (int trial = 0; trial < 400; ++trial) {
    const BlockDraft draft = random.block(trial % 2 == 0);
    const RankState begin = random.state();
    for (const std::int64_t count : kCounts) {
      const Repeated turns(draft, count);
      RankState folded = begin, plain = begin;
      ChainRunner(turns.pool, rates).run(turns.chain, folded);
      test::run_plainly(turns.chain, turns.pool, rates, plain);
      CAPTURE(count);
      REQUIRE(test::same_times(folded, plain));
      REQUIRE(folded.running.size() == plain.running.size());
    }
  }
}

TEST_CASE("folding spares turns") {
  test::RandomBlocks random(42);
  const RateTable rates = test::slow_rates();
  const auto folded = [&](bool slowing) {
    int blocks = 0;
    for (int trial = 0; trial < 100; ++trial) {
      const Repeated chain(random.block(slowing), 1000);
      ChainRunner runner(chain.pool, rates);
      RankState state;
      runner.run(chain.chain, state);
      blocks += runner.turns() < 100 ? 1 : 0;
    }
    return blocks;
  };
  // Where another stream is slower than the compute stream, or collectives drift against the
  // kernels that they slow, turns go one by one; no stack makes such blocks, random numbers do.
  CHECK(folded(false) >= 70);
  CHECK(folded(true) >= 70);
}

TEST_CASE("a stream that is ahead is not folded before the compute stream has reached it") {
  // The gather takes no time but the compute stream's: it stands still until overtaken.
  BlockDraft draft;
  Operation kernel, gather;
  kernel.stream = static_cast<std::int8_t>(slot_of(Stream::kCompute));
  kernel.seconds = 3;
  gather.stream = static_cast<std::int8_t>(slot_of(Stream::kFsdp));
  gather.after.push_back(0);
  draft.operations = {kernel, gather};
  for (const std::int64_t count : kCounts) {
    const Repeated turns(draft, count);
    RankState folded, plain;
    folded[Stream::kFsdp] = plain[Stream::kFsdp] = 40;
    ChainRunner(turns.pool, RateTable{}).run(turns.chain, folded);
    test::run_plainly(turns.chain, turns.pool, RateTable{}, plain);
    CHECK(folded.at == plain.at);
  }
}

TEST_CASE("a block whose offsets return after two turns is folded by twos") {
  const BlockDraft draft = test::two_turn_block();
  for (std::int64_t count = 1; count <= 60; ++count) {
    const Repeated turns(draft, count);
    RankState folded, plain;
    ChainRunner runner(turns.pool, RateTable{});
    runner.run(turns.chain, folded);
    test::run_plainly(turns.chain, turns.pool, RateTable{}, plain);
    CAPTURE(count);
    CHECK(folded.at == plain.at);
    CHECK(runner.turns() <= 6);
  }
}

TEST_CASE("the offsets of that block do not return after one turn") {
  ProgramPool pool;
  const Block& block = pool[pool.add(test::two_turn_block())];
  BlockRunner runner(RateTable{});
  RankState state;
  std::vector<double> offsets, ends;
  for (int turn = 0; turn < 8; ++turn) {
    runner.run(block, state);
    offsets.push_back(state[Stream::kFsdp] - state[Stream::kCompute]);
    ends.push_back(state[Stream::kCompute]);
  }
  // compute 1, 12, 18, 29 ... and fsdp 2, 8, 19, 25 ...: see two_turn_block.
  for (std::size_t i = 2; i < offsets.size(); ++i) {
    CHECK(offsets[i] == offsets[i - 2]);
    CHECK(offsets[i] != offsets[i - 1]);
    CHECK(ends[i] - ends[i - 2] == 17);
  }
}

TEST_CASE("chains of several blocks are folded block by block") {
  test::RandomBlocks random(43);
  const RateTable rates = test::slow_rates();
  for (int trial = 0; trial < 100; ++trial) {
    ProgramPool pool;
    ChainDraft links;
    for (int i = 0; i < 4; ++i) {
      links.push_back({pool.add(random.block(true)), random.number(0, 30)});
    }
    const RankState begin = random.state();
    RankState folded = begin, plain = begin;
    ChainRunner(pool, rates).run(links, folded);
    test::run_plainly(links, pool, rates, plain);
    REQUIRE(test::same_times(folded, plain));
  }
}

TEST_CASE("following where time goes changes no time and adds up") {
  test::RandomBlocks random(44);
  const RateTable rates = test::slow_rates();
  for (int trial = 0; trial < 100; ++trial) {
    const Repeated turns(random.block(true), 50);
    ChainRunner runner(turns.pool, rates);
    RankState plain, followed;
    SlotBreakdowns spent{};
    runner.run(turns.chain, plain);
    runner.run(turns.chain, followed, spent);
    REQUIRE(followed.at == plain.at);
    for (std::size_t s = 0; s < spent.size(); ++s) {
      const double sum = std::accumulate(spent[s].begin(), spent[s].end(), 0.0);
      REQUIRE(test::close(sum, followed.at[s]));
    }
  }
}

TEST_CASE("a chain is linear where no collective of it can slow a kernel") {
  BlockDraft draft;
  Operation gather;
  gather.stream = static_cast<std::int8_t>(slot_of(Stream::kFsdp));
  gather.collective = CollectiveKind::kAllGather;
  draft.operations = {gather};
  const Repeated quiet(draft, 1);
  CHECK(is_linear(quiet.chain, quiet.pool, test::slow_rates()));
  draft.operations[0].slows = true;
  const Repeated slowing(draft, 1);
  CHECK(!is_linear(slowing.chain, slowing.pool, test::slow_rates()));
  CHECK(is_linear(slowing.chain, slowing.pool, RateTable{}));  // at full rate
}

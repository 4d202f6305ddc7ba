#pragma once

// Seeded random blocks, states and chains for tests of the engines. Durations are whole numbers, so
// that sums are exact where no kernel is slowed.

#include <cmath>
#include <random>
#include <vector>

#include "model/engine/block_run.hpp"
#include "model/program.hpp"

namespace forerun::test {

class RandomBlocks {
 public:
  explicit RandomBlocks(std::uint64_t seed) : random_(seed) {}

  /// A whole number in [low, high].
  int number(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return number(1, 100) <= percent; }

  /// A block of some operations on all device streams, with edges, events and markers. `slowing`:
  /// its collectives slow kernels behind them.
  BlockDraft block(bool slowing) {
    BlockDraft draft;
    draft.name = "random";
    double issued = 0;
    const int operations = number(1, 9);
    for (int i = 0; i < operations; ++i) {
      issued += number(0, 2);
      Operation op;
      op.name = "op";
      op.issued_at = issued;
      op.seconds = number(0, 9);
      place(op, slowing);
      while (i > 0 && chance(40) && op.after.size() < 3) {
        op.after.push_back(static_cast<std::int16_t>(number(0, i - 1)));
      }
      if (chance(30)) op.waits.push_back(static_cast<std::int8_t>(event()));
      if (chance(30)) op.records = static_cast<std::int8_t>(event());
      draft.operations.push_back(op);
    }
    draft.host_seconds = issued + number(0, 3);
    return draft;
  }

  RankState state() {
    RankState out;
    for (double& time : out.at)
      time = number(0, 40);
    return out;
  }

 private:
  int event() { return kStreams + number(0, kEvents - 1); }

  void place(Operation& op, bool slowing) {
    const int kind = number(0, 9);
    if (kind == 0) return;  // a marker on no stream
    if (kind <= 5) {
      op.stream = static_cast<std::int8_t>(slot_of(Stream::kCompute));
      op.family = chance(50) ? KernelFamily::kGemm : KernelFamily::kEager;
      op.category = op.family == KernelFamily::kGemm ? Category::kGemm : Category::kPointwise;
      return;
    }
    const Stream streams[] = {Stream::kFsdp, Stream::kTensor, Stream::kContext};
    op.stream = static_cast<std::int8_t>(slot_of(streams[number(0, 2)]));
    op.family = KernelFamily::kCollective;
    op.collective = chance(50) ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter;
    op.category = Category::kExposedDp;
    op.slows = slowing && op.stream == slot_of(Stream::kFsdp);
  }

  std::mt19937_64 random_;
};

/// Kernels at half or at three quarters of their rate beside collectives.
inline RateTable slow_rates() {
  RateTable rates;
  for (auto& row : rates.rates)
    row.fill(0.75);
  rates.rates[static_cast<std::size_t>(KernelFamily::kGemm)].fill(0.5);
  return rates;
}

/// Turn by turn, nothing folded.
inline void run_plainly(Chain chain, const ProgramPool& pool, const RateTable& rates,
                        RankState& state) {
  BlockRunner runner(rates);
  for (const ChainLink& link : chain) {
    for (std::int64_t turn = 0; turn < link.count; ++turn)
      runner.run(pool[link.block], state);
  }
}

inline bool close(double a, double b) {
  return std::abs(a - b) <= 1e-11 * std::max(1.0, std::abs(b));
}

inline bool same_times(const RankState& a, const RankState& b) {
  for (std::size_t s = 0; s < a.at.size(); ++s) {
    if (!close(a.at[s], b.at[s])) return false;
  }
  return true;
}

/// A block whose stream offsets come back after two turns, never after one. In every turn
///   compute' = max(compute, fsdp + 9) + 1,   fsdp' = max(fsdp, compute + 5) + 2,
/// the added delays being markers behind each operation that record an event for the next turn. The
/// circuit through both streams gains 9 + 1 + 5 + 2 = 17 in two turns, more than either alone, and
/// the gain alternates between them: a turn adds 1 + 9 to one and 2 + 5 to the other, in turn.
inline BlockDraft two_turn_block() {
  const auto compute = static_cast<std::int8_t>(slot_of(Stream::kCompute));
  const auto fsdp = static_cast<std::int8_t>(slot_of(Stream::kFsdp));
  const auto from_compute = static_cast<std::int8_t>(slot_of(Event::kReduced));
  const auto from_fsdp = static_cast<std::int8_t>(slot_of(Event::kGathered));
  const auto operation = [](std::int8_t stream, double seconds) {
    Operation op;
    op.stream = stream;
    op.seconds = seconds;
    return op;
  };
  BlockDraft draft;
  draft.name = "two turns";
  draft.operations = {operation(compute, 1), operation(fsdp, 2), operation(kNoSlot, 5),
                      operation(kNoSlot, 9)};
  draft.operations[0].waits.push_back(from_fsdp);
  draft.operations[1].waits.push_back(from_compute);
  draft.operations[2].after.push_back(0);
  draft.operations[2].records = from_compute;
  draft.operations[3].after.push_back(1);
  draft.operations[3].records = from_fsdp;
  return draft;
}

}  // namespace forerun::test

#pragma once

// A Program: what the ranks of one model replica will do in one training step, as a tree that both
// engines read. It is never a flat list.
//
//   Program    one rank a pipeline position; each has a schedule of actions and the bytes it holds
//   Schedule   prefix, a cycle that repeats, suffix           (model/schedules)
//   Action     forward, backward, reduce or optimizer of one (stage, microbatch)
//   Chain      blocks with repetition counts, in order
//   Block      some tens of operations
//   Operation  a stream, a duration, what it waits for, what it records, memory
//
// Meaning. Streams are in order, as CUDA's are. The host issues operations in the order of
// `issued_at` and is never held up by the device inside a block. An operation starts at the latest
// of: the end of its predecessor on its stream, the time the host has issued it, the end of the
// operations and events it waits for. While an operation of the compute stream runs beside
// collectives that stand before it in program order, its rate is the product of the rate table's
// entries (kernel family x collective); collectives hold their SMs and are not slowed. Program
// order lists a collective before every kernel that it may run beside.
//
// Memory is a fold in program order: the allocator acts when the host issues.

#include <array>
#include <boost/container/static_vector.hpp>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <span>
#include <string_view>
#include <vector>

#include "base/id.hpp"
#include "model/kernel.hpp"
#include "model/schedules/schedule.hpp"

namespace forerun {

/// The streams of one GPU and the host that launches.
enum class Stream : std::uint8_t { kHost, kCompute, kFsdp, kTensor, kContext, kPipe };
inline constexpr int kStreams = 6;
constexpr auto enum_texts(Stream) {
  return std::array<std::string_view, kStreams>{"host", "compute", "fsdp", "tp", "cp", "pp"};
}
FR_CHECK_ENUM(Stream, Stream::kPipe);

/// Events that outlive a block (CUDA events a stack records and waits on).
enum class Event : std::uint8_t { kGathered, kGatheredNext, kReduced };
inline constexpr int kEvents = 3;
/// What an engine carries from block to block: a time for each stream and each event.
inline constexpr int kSlots = kStreams + kEvents;
constexpr int slot_of(Stream stream) {
  return static_cast<int>(stream);
}
constexpr int slot_of(Event event) {
  return kStreams + static_cast<int>(event);
}
inline constexpr std::int8_t kNoSlot = -1;

struct Operation {
  std::string_view name;
  double seconds = 0;    ///< alone on the GPU
  double issued_at = 0;  ///< seconds after the host entered the block
  /// Slot of the stream it runs on; kNoSlot: a marker on no stream.
  std::int8_t stream = kNoSlot;
  std::int8_t records = kNoSlot;  ///< slot of the event it records when it ends
  KernelFamily family = KernelFamily::kEager;
  CollectiveKind collective = CollectiveKind::kNone;
  bool slows = false;  ///< a collective that kernels behind it may run beside
  Category category = Category::kOther;
  boost::container::static_vector<std::int16_t, 6> after;  ///< earlier operations of the block
  boost::container::static_vector<std::int8_t, 3> waits;   ///< slots of events
};

/// The caching allocator keeps a pool of segments for each stream that allocates; what one stream
/// has freed another cannot use.
enum class MemoryPool : std::uint8_t { kCompute, kGather, kReduce };
inline constexpr std::size_t kMemoryPools = 3;
constexpr auto enum_texts(MemoryPool) {
  return std::array<std::string_view, kMemoryPools>{"compute", "gather", "reduce"};
}
FR_CHECK_ENUM(MemoryPool, MemoryPool::kReduce);

/// A change of what is live, in the order in which the host issues it.
struct MemoryEvent {
  MemoryPool pool = MemoryPool::kCompute;
  MemoryComponent component = MemoryComponent::kOther;
  std::int64_t bytes = 0;  ///< of live tensors; above 0: allocated; below: freed
  std::int64_t held = 0;   ///< of what the pool holds: the same, but for holes that stay unused
};

/// (net change, highest prefix) of a sequence of memory events; combines associatively.
struct MemoryPair {
  std::int64_t net = 0;
  std::int64_t peak = 0;  ///< highest value reached from the start, at least 0

  friend constexpr MemoryPair operator+(MemoryPair a, MemoryPair b) {
    const std::int64_t later = a.net + b.peak;
    return {a.net + b.net, a.peak > later ? a.peak : later};
  }
  /// `times` repetitions in closed form.
  [[nodiscard]] constexpr MemoryPair repeated(std::int64_t times) const {
    if (times == 0) return {};
    const std::int64_t last = net > 0 ? net * (times - 1) + peak : peak;
    return {net * times, last > peak ? last : peak};
  }
  constexpr bool operator==(const MemoryPair&) const = default;
};

/// A pair for live tensors (allocated) and one for each pool (whose peaks add up to reserved).
struct MemoryFold {
  MemoryPair all;
  std::array<MemoryPair, kMemoryPools> pool;

  void apply(const MemoryEvent& event) {
    all = all + MemoryPair{event.bytes, event.bytes > 0 ? event.bytes : 0};
    MemoryPair& own = pool[static_cast<std::size_t>(event.pool)];
    own = own + MemoryPair{event.held, event.held > 0 ? event.held : 0};
  }
  friend MemoryFold operator+(MemoryFold a, const MemoryFold& b) {
    a.all = a.all + b.all;
    for (std::size_t i = 0; i < kMemoryPools; ++i)
      a.pool[i] = a.pool[i] + b.pool[i];
    return a;
  }
  [[nodiscard]] MemoryFold repeated(std::int64_t times) const {
    MemoryFold out;
    out.all = all.repeated(times);
    for (std::size_t i = 0; i < kMemoryPools; ++i)
      out.pool[i] = pool[i].repeated(times);
    return out;
  }
  bool operator==(const MemoryFold&) const = default;
};

/// A block as it is put together.
struct BlockDraft {
  std::string_view name;
  std::vector<Operation> operations;
  double host_seconds = 0;  ///< host time of the whole block
  std::vector<MemoryEvent> events;
};

/// A block of a program; its parts lie in the pool.
struct Block {
  std::string_view name;
  std::span<const Operation> operations;
  double host_seconds = 0;
  std::span<const MemoryEvent> events;
  MemoryFold memory;  ///< of the events
};

using BlockId = Id<Block>;
using ChainId = Id<struct ChainTag>;

struct ChainLink {
  BlockId block;
  std::int64_t count = 1;
};
using Chain = std::span<const ChainLink>;
using ChainDraft = std::vector<ChainLink>;

/// rates[family][collective]: the rate of a kernel while one such collective runs; 1 = unhindered.
struct RateTable {
  static constexpr std::size_t kCollectives = 7;
  std::array<std::array<double, kCollectives>, kKernelFamilies> rates;

  RateTable() {
    for (auto& row : rates)
      row.fill(1.0);
  }
  [[nodiscard]] double rate(KernelFamily family, CollectiveKind collective) const {
    return rates[static_cast<std::size_t>(family)][static_cast<std::size_t>(collective)];
  }
  bool operator==(const RateTable&) const = default;
};

/// The chains of one virtual stage.
struct StageChains {
  std::array<ChainId, kActionKinds> chain;  ///< by ActionKind; invalid: the action does nothing
};

/// Bytes that a rank holds when a step begins, by component; all in the compute stream's pool.
using Resident = std::array<std::int64_t, kMemoryComponents>;

/// Storage of blocks and chains, shared by the programs of one lowering. Nothing in it moves or
/// goes.
class ProgramPool {
 public:
  BlockId add(const BlockDraft& draft);
  ChainId add(Chain chain);
  [[nodiscard]] const Block& operator[](BlockId id) const {
    return blocks_[static_cast<std::size_t>(id.index())];
  }
  [[nodiscard]] Chain operator[](ChainId id) const {
    return chains_[static_cast<std::size_t>(id.index())];
  }
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }

 private:
  template <class T>
  std::span<const T> keep(std::span<const T> values);

  std::pmr::monotonic_buffer_resource storage_{std::size_t{1} << 16};
  std::deque<Block> blocks_;
  std::vector<Chain> chains_;
};

struct Program {
  const ProgramPool* pool = nullptr;
  const PipelineSchedule* schedule = nullptr;
  std::int64_t repeats = 0;         ///< of the schedule's cycle
  int ranks = 1;                    ///< pipeline positions
  std::vector<StageChains> stages;  ///< all virtual stages
  std::vector<Resident> resident;   ///< what a rank holds when the step begins, by rank
  double message_seconds = 0;       ///< send of one microbatch's activations or gradients
  bool blocking_sends = false;      ///< the sender's compute stream waits for its send
  double sync_seconds = 0;          ///< the reduction over all ranks between norm and optimizer
  RateTable rates;

  [[nodiscard]] int stage_of(int rank, int chunk) const { return schedule->stage_of(rank, chunk); }
  [[nodiscard]] std::int64_t microbatches() const {
    return schedule->base_microbatches + repeats * schedule->stride;
  }
};

}  // namespace forerun

#pragma once

// The blocks that FSDP2 makes of a stage's decoder blocks: gathers before, reductions behind, and
// what stands at the ends of a pass and of a step. Times are those of Costs; bytes as noted beside
// them.

#include <cstdint>

#include "base/memo.hpp"
#include "model/sharding/block_assembler.hpp"
#include "model/sharding/strategy.hpp"

namespace forerun {

/// Parameters that are gathered and reduced together, on this rank.
struct Fsdp2Unit {
  std::int64_t parameters = 0;  ///< after tensor parallelism
  std::int64_t gathered = 0;    ///< bytes
  std::int64_t gradients = 0;   ///< bytes, as the backward pass leaves them
  int tensors = 0;
  /// Of those, what belongs to experts: their own FSDP module, cut over the ranks that hold the
  /// same ones.
  std::int64_t expert_parameters = 0, expert_gathered = 0;

  [[nodiscard]] bool empty() const { return parameters == 0; }
};

/// The unit of a block; empty for none.
Fsdp2Unit unit_of(const CostedBlock* block);
/// Embedding, final norm and output projection: what no decoder block holds.
Fsdp2Unit root_unit(const StageParts& stage);
/// All parameters of a stage together.
Fsdp2Unit whole_unit(const StageParts& stage);
/// Parameters of a unit that one rank keeps.
std::int64_t shard_of(const Fsdp2Unit& unit, const StageParts& stage);

/// Whose gathering buffer a block frees once its own parameters are copied out.
enum class Before : std::uint8_t { kNothing, kRoot, kBlock };

/// How a decoder block's forward pass is wrapped.
struct ForwardRole {
  bool gathers = false;  ///< waits for its parameters and copies them out
  bool ahead = false;    ///< issues the gather of the block after the next
  bool reshard = false;  ///< frees its parameters at the end
  Before before = Before::kNothing;
  const CostedBlock* block = nullptr;
  const CostedBlock* next = nullptr;    ///< the block after the next, where its gather is issued
  const CostedBlock* former = nullptr;  ///< the block before
  bool operator==(const ForwardRole&) const = default;
  [[nodiscard]] std::uint32_t number() const {
    return gathers + 2U * ahead + 4U * reshard + 8U * static_cast<std::uint32_t>(before);
  }
};

enum class ReduceMode : std::uint8_t {
  kScatter,            ///< reduce now; gradients are sharded
  kScatterAccumulate,  ///< the same, added to the shard of earlier microbatches
  kAccumulateFirst,    ///< keep in fp32, first microbatch
  kAccumulate,         ///< add to what is kept
};
constexpr bool scatters(ReduceMode mode) {
  return mode == ReduceMode::kScatter || mode == ReduceMode::kScatterAccumulate;
}

struct BackwardRole {
  bool gathers_now = false;  ///< begins with its own gather, exposed
  bool gathers = false;      ///< its gather was issued before
  bool next = false;         ///< issues the gather of the block before
  bool reshard = false;
  bool first_reduce = false;  ///< no reduction before it whose buffer it frees
  ReduceMode reduce = ReduceMode::kScatter;
  const CostedBlock* block = nullptr;
  const CostedBlock* preceding = nullptr;  ///< the block before it in the model, gathered next
  const CostedBlock* former = nullptr;     ///< the block whose backward pass ran before
  bool operator==(const BackwardRole&) const = default;
  [[nodiscard]] std::uint32_t number() const {
    return gathers_now + 2U * gathers + 4U * next + 8U * reshard + 16U * first_reduce +
           32U * static_cast<std::uint32_t>(reduce);
  }
};

class Fsdp2Blocks {
 public:
  Fsdp2Blocks(const SoftwareStack& software, const Costs& costs, ProgramPool& pool)
      : software_(software), host_(software.host), costs_(costs), pool_(pool) {}

  /// Before the first block of a pass that gathers.
  BlockId prologue(const StageParts& s);
  BlockId forward(const ForwardRole& role, const StageParts& s);
  BlockId forward_end(const StageParts& s);
  /// A pass of a block with nothing around it.
  BlockId plain(const CostedBlock& block, bool backward);
  BlockId backward(const BackwardRole& role, const StageParts& s);
  /// After the blocks: the root unit's gradients, exposed.
  BlockId backward_end(ReduceMode mode, const StageParts& s);
  /// One unit's accumulated gradients are reduced; the next one's copy-in waits for it. `former`:
  /// the unit reduced before it, whose buffer is freed.
  BlockId reduce(const Fsdp2Unit& unit, const Fsdp2Unit& former, const StageParts& s);
  BlockId reduce_end(const Fsdp2Unit& last, const StageParts& s);
  BlockId norm(const StageParts& s);
  BlockId optimizer(const StageParts& s);

 private:
  [[nodiscard]] double strided(double bytes) const {
    return costs_.memory_bound(KernelFamily::kStrided, bytes);
  }
  [[nodiscard]] Operation compute_copy(std::string_view name, double bytes) const;
  /// A collective of the data-parallel group over `bytes`, of which `of_experts` go over their own
  /// group. `hidden`: kernels may run beside it.
  [[nodiscard]] Operation collective(std::string_view name, CollectiveKind kind, double bytes,
                                     double of_experts, const StageParts& s, bool hidden) const;
  /// Copy-in and all-gather of a unit; returns the all-gather's index, the copy-in's is one less.
  std::int16_t gather(BlockAssembler& b, const Fsdp2Unit& unit, const StageParts& s,
                      bool hidden) const;
  void wait_and_copy_out(BlockAssembler& b, const Fsdp2Unit& unit) const;
  void reduce_unit(BlockAssembler& b, const Fsdp2Unit& unit, const Fsdp2Unit& before,
                   ReduceMode mode, bool hidden, const StageParts& s) const;

  void reduced(BlockAssembler& b, Operation scatter, const Fsdp2Unit& unit, const StageParts& s,
               bool hidden) const;

  /// Blocks are shared by all stages that use them in the same role.
  struct Wrapping {
    const CostedBlock* block = nullptr;
    std::uint32_t role = 0;
    Span shard, replicate;
    OptimizerStates states;
    std::int64_t freed = 0;  ///< of the root's gathering buffer
    bool fp8 = false;
    const CostedBlock* ahead = nullptr;
    const CostedBlock* former = nullptr;
    Span expert_shard;
    bool operator==(const Wrapping&) const = default;
    [[nodiscard]] std::size_t hash() const;
  };

  /// FSDP1: a unit is one flat parameter, gathered and reduced where it lies.
  [[nodiscard]] bool flat() const { return software_.sharding == ShardingFamily::kFsdp1; }

  const SoftwareStack& software_;
  const HostCosts& host_;
  const Costs& costs_;
  ProgramPool& pool_;
  BlockDraft draft_;  // of the block under construction
  Memo<Wrapping, BlockId> forward_, backward_, plain_;
};

}  // namespace forerun

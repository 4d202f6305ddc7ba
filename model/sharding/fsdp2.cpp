// FSDP2: per-parameter sharding as torch.distributed._composable.fsdp does it (PyTorch 2.6, files
// _fsdp_param_group.py, _fsdp_collectives.py, _fsdp_state.py; torchtitan of December 2024).
//
//  - A unit is a decoder block; embedding, final norm and output projection are the root unit,
//    gathered at the beginning, never resharded, reduced at the end.
//  - Forward: the host runs ahead, so the gather of unit i + 2 is issued while unit i computes; it
//    waits for unit i's copy-out. Backward: unit i - 1 is gathered explicitly when unit i begins.
//  - Copy-in of a gather runs on the gathering stream; copy-out and the copy-in of a reduction run on
//    the compute stream. Gathers and reductions share one communicator: one stream, in order.
//  - The reduction is fp32; the compute stream waits for the previous reduction before it fills the
//    next buffer, so one input buffer is alive.
//  - With a pipeline, parameters are gathered for a stage's first microbatch and kept, gradients are
//    accumulated unsharded in fp32, and after the last backward one unit after the other is reduced.

#include <algorithm>
#include <map>
#include <tuple>

#include "model/sharding/block_assembler.hpp"
#include "model/sharding/sharding_families.hpp"

namespace forerun {
namespace {

constexpr std::int64_t kFp32 = 4;
constexpr auto kGatheredSlot = static_cast<std::int8_t>(slot_of(Event::kGathered));
constexpr auto kGatheredNextSlot = static_cast<std::int8_t>(slot_of(Event::kGatheredNext));
constexpr auto kReducedSlot = static_cast<std::int8_t>(slot_of(Event::kReduced));
constexpr auto kComputeStream = static_cast<std::int8_t>(slot_of(Stream::kCompute));
constexpr auto kFsdpStream = static_cast<std::int8_t>(slot_of(Stream::kFsdp));

/// Bytes that copying a parameter's shard into a gathering buffer reads and writes: fp32 to bf16 and
/// once more (4 + 2 + 2 + 2); for fp8 scale, clamp and cast in fp32, then the copy.
constexpr double kCopyInBf16 = 10, kCopyInFp8 = 8 + 8 + 5 + 2;
/// Gradients into the reduction's buffer: bf16 to fp32; or fp32 to fp32 when accumulated.
constexpr double kReduceCopyIn = 2 + 4, kReduceCopyInFp32 = 4 + 4;
/// Accumulating a bf16 gradient in fp32: the first time a cast, later read both and write.
constexpr double kFirstAddBytes = 2 + 4, kLaterAddBytes = 2 + 4 + 4;
/// Adam in place over separate kernels (foreach): mul, lerp, mul, addcmul, sqrt, div, add, addcdiv;
/// fused: read p, g, m, v and write p, m, v. Clipping reads and writes the gradients once.
constexpr double kForeachAdam = 80, kFusedAdam = 28, kClip = 8;
constexpr int kForeachKernels = 8;

/// A unit on this rank.
struct Unit {
  std::int64_t parameters = 0;  // after tensor parallelism
  std::int64_t gathered = 0;    // bytes
  std::int64_t gradients = 0;   // bytes, as the backward pass leaves them
  int tensors = 0;

  [[nodiscard]] bool empty() const { return parameters == 0; }
  bool operator==(const Unit&) const = default;
};

Unit unit_of(const CostedBlock* block) {
  if (block == nullptr) return {};
  const BlockKernels& k = *block->kernels;
  return {k.parameter_count, k.gathered_bytes, k.gradient_bytes, k.parameter_tensors};
}

Unit operator+(const Unit& a, const Unit& b) {
  return {a.parameters + b.parameters, a.gathered + b.gathered, a.gradients + b.gradients,
          a.tensors + b.tensors};
}

/// Whose gathering buffer a block frees once its own parameters are copied out.
enum class Before : std::uint8_t { kNothing, kRoot, kBlock };

/// How a decoder block's pass is wrapped.
struct ForwardRole {
  bool gathers = false;  // waits for its parameters and copies them out
  bool ahead = false;    // issues the gather of the block after the next
  bool reshard = false;  // frees its parameters at the end
  Before before = Before::kNothing;
  auto operator<=>(const ForwardRole&) const = default;
};

enum class ReduceMode : std::uint8_t {
  kScatter,            // reduce now; gradients are sharded
  kScatterAccumulate,  // the same, added to the shard of earlier microbatches
  kAccumulateFirst,    // keep in fp32, first microbatch
  kAccumulate,         // add to what is kept
};

struct BackwardRole {
  bool gathers_now = false;   // begins with its own gather, exposed
  bool gathers = false;       // its gather was issued before
  bool next = false;          // issues the gather of the block before
  bool reshard = false;
  bool first_reduce = false;  // no reduction before it whose buffer it frees
  ReduceMode reduce = ReduceMode::kScatter;
  auto operator<=>(const BackwardRole&) const = default;
};

class Fsdp2 : public ShardingStrategy {
 public:
  Fsdp2(const SoftwareStack& software, const Costs& costs, ProgramPool& pool)
      : software_(software), host_(software.host), costs_(costs), pool_(pool) {}

  StageChains chains(const StageParts& stage) override;
  [[nodiscard]] Resident resident(const StageParts& stage) const override;
  [[nodiscard]] std::int64_t gradients_between_steps(const StageParts& stage) const override {
    return kFp32 * shard(total(stage), stage);
  }

 private:
  // ---- sizes and times -----------------------------------------------------------------------

  [[nodiscard]] static Unit root(const StageParts& s) { return unit_of(s.embedding) + unit_of(s.head); }
  [[nodiscard]] static Unit total(const StageParts& s) {
    Unit sum = root(s);
    const Unit layer = unit_of(s.layer);
    for (int i = 0; i < s.layers; ++i) sum = sum + layer;
    return sum;
  }
  [[nodiscard]] static std::int64_t shard(const Unit& unit, const StageParts& s) {
    return (unit.parameters + s.shard.ranks - 1) / s.shard.ranks;
  }

  [[nodiscard]] double strided(double bytes) const {
    return costs_.memory_bound(KernelFamily::kStrided, bytes);
  }

  Operation compute_copy(std::string_view name, double bytes) const {
    Operation op;
    op.name = name;
    op.seconds = strided(bytes);
    op.stream = kComputeStream;
    op.family = KernelFamily::kStrided;
    op.category = Category::kPointwise;
    return op;
  }

  /// A collective of the data-parallel group. `hidden`: kernels may run beside it.
  Operation collective(std::string_view name, CollectiveKind kind, double bytes,
                       const StageParts& s, bool hidden) const {
    Operation op;
    op.name = name;
    op.seconds = costs_.collective(kind, bytes, s.shard);
    if (hidden) op.seconds /= costs_.rate_beside_kernels(s.shard);
    op.stream = kFsdpStream;
    op.family = KernelFamily::kCollective;
    op.collective = kind;
    op.category = Category::kExposedDp;
    op.slows = hidden && s.shard.ranks > 1;
    return op;
  }

  /// Copy-in and all-gather of a unit; returns the all-gather's index.
  std::int16_t gather(BlockAssembler& b, const Unit& unit, const StageParts& s, bool hidden) const {
    Operation copy;
    copy.name = "fsdp.copy_in";
    const double per_parameter = s.fp8 && software_.fp8_all_gather ? kCopyInFp8 : kCopyInBf16;
    copy.seconds = strided(per_parameter * static_cast<double>(shard(unit, s)));
    copy.stream = kFsdpStream;
    copy.family = KernelFamily::kStrided;
    copy.category = Category::kExposedDp;
    b.add(copy);
    return b.add(collective("fsdp.all_gather", CollectiveKind::kAllGather,
                            static_cast<double>(unit.gathered), s, hidden),
                 host_.collective);
  }

  // ---- blocks --------------------------------------------------------------------------------

  BlockId prologue(const StageParts& s);
  BlockId forward(const CostedBlock& block, const ForwardRole& role, const StageParts& s);
  BlockId forward_end(const StageParts& s);
  BlockId plain(const CostedBlock& block, bool backward, const StageParts& s);
  BlockId backward(const CostedBlock& block, const BackwardRole& role, const StageParts& s);
  BlockId root_backward_end(ReduceMode mode, const StageParts& s);
  BlockId reduce(const Unit& unit, bool first, const StageParts& s);
  BlockId reduce_end(const Unit& last, const StageParts& s);
  BlockId norm(const StageParts& s);
  BlockId optimizer(const StageParts& s);

  void wait_and_copy_out(BlockAssembler& b, const Unit& unit);
  void reduce_unit(BlockAssembler& b, const Unit& unit, const Unit& before, ReduceMode mode,
                   bool hidden, const StageParts& s);

  // ---- chains --------------------------------------------------------------------------------

  Chain gathering_forward(const StageParts& s, bool reshard_all, bool reshard_any);
  Chain plain_forward(const StageParts& s);
  Chain backward_chain(const StageParts& s, bool resharded, bool last_resharded, ReduceMode mode);
  Chain reduce_chain(const StageParts& s);
  ChainId add(Chain chain) { return pool_.add(std::move(chain)); }

  /// Decoder blocks with a role are shared by all stages that use them.
  template <class Role>
  struct Known {
    const CostedBlock* block;
    Role role;
    Span shard;
    bool fp8;
    BlockId id;
  };
  template <class Role, class Make>
  BlockId remember(std::vector<Known<Role>>& known, const CostedBlock& block, const Role& role,
                   const StageParts& s, Make make) {
    for (const auto& k : known) {
      if (k.block == &block && k.role == role && k.shard == s.shard && k.fp8 == s.fp8) return k.id;
    }
    const BlockId id = pool_.add(make());
    known.push_back({&block, role, s.shard, s.fp8, id});
    return id;
  }

  const SoftwareStack& software_;
  const HostCosts& host_;
  const Costs& costs_;
  ProgramPool& pool_;
  std::vector<Known<ForwardRole>> forward_;
  std::vector<Known<BackwardRole>> backward_;
};

// ---- forward ---------------------------------------------------------------------------------

/// Before the first block: the root unit is gathered, exposed, and the first two blocks' gathers are
/// issued.
BlockId Fsdp2::prologue(const StageParts& s) {
  BlockAssembler b("fsdp.prologue");
  const Unit unit = root(s), layer = unit_of(s.layer);
  b.host(host_.sharded_unit);
  std::int16_t copied = -1;
  if (!unit.empty()) {
    const std::int16_t gathered = gather(b, unit, s, false);
    Operation copy = compute_copy("fsdp.copy_out", 2 * static_cast<double>(unit.gathered));
    copy.after.push_back(gathered);
    copied = b.add(copy, host_.eager_forward);
    b.memory(MemoryPool::kGather, MemoryComponent::kGathered, unit.gathered);
    b.memory(MemoryPool::kCompute, MemoryComponent::kGathered, unit.gathered);
  }
  // The host reaches the blocks after this one and the embedding.
  const double embedding = s.embedding != nullptr ? s.embedding->forward.host_seconds : 0;
  for (int i = 0; i < std::min(2, s.layers); ++i) {
    const double ahead = embedding + i * (s.layer->forward.host_seconds + host_.sharded_unit);
    const std::int16_t gathered = gather(b, layer, s, true);
    b.operation(gathered).issued_at += ahead;
    b.operation(gathered).records = i == 0 ? kGatheredSlot : kGatheredNextSlot;
    if (i == 1 && copied >= 0) b.operation(gathered).after.push_back(copied);
  }
  return pool_.add(b.take());
}

void Fsdp2::wait_and_copy_out(BlockAssembler& b, const Unit& unit) {
  Operation copy = compute_copy("fsdp.copy_out", 2 * static_cast<double>(unit.gathered));
  copy.waits.push_back(kGatheredSlot);
  b.add(copy, host_.eager_forward);
  b.memory(MemoryPool::kCompute, MemoryComponent::kGathered, unit.gathered);
}

BlockId Fsdp2::forward(const CostedBlock& block, const ForwardRole& role, const StageParts& s) {
  return remember(forward_, block, role, s, [&] {
    BlockAssembler b("decoder.forward");
    const Unit unit = unit_of(&block);
    b.host(host_.sharded_unit);
    std::int16_t ahead = -1;
    if (role.gathers) {
      b.memory(MemoryPool::kGather, MemoryComponent::kGathered, unit.gathered);
      wait_and_copy_out(b, unit);
      b.memory(MemoryPool::kGather, MemoryComponent::kGathered,
               role.before == Before::kRoot    ? -root(s).gathered
               : role.before == Before::kBlock ? -unit.gathered
                                               : 0);
      const std::int16_t copied = b.last();
      Operation shift;  // what was the next gather is now this block's successor's
      shift.name = "fsdp.next";
      shift.waits.push_back(kGatheredNextSlot);
      shift.records = kGatheredSlot;
      b.add(shift);
      if (role.ahead) {
        ahead = gather(b, unit, s, true);
        b.operation(static_cast<std::int16_t>(ahead - 1)).after.push_back(copied);
        b.operation(ahead).records = kGatheredNextSlot;
      }
    }
    b.add(block.forward);
    if (role.reshard) b.memory(MemoryPool::kCompute, MemoryComponent::kGathered, -unit.gathered);
    if (ahead >= 0) {  // the host issues it when it enters the block after the next
      b.operation(ahead).issued_at += 2 * (block.forward.host_seconds + host_.sharded_unit);
      b.operation(static_cast<std::int16_t>(ahead - 1)).issued_at = b.operation(ahead).issued_at;
    }
    return b.take();
  });
}

/// The last gathering buffer is freed when the root's forward ends.
BlockId Fsdp2::forward_end(const StageParts& s) {
  BlockAssembler b("fsdp.forward_end");
  const std::int64_t buffer = s.layers > 0 ? unit_of(s.layer).gathered : root(s).gathered;
  b.memory(MemoryPool::kGather, MemoryComponent::kGathered, -buffer);
  return pool_.add(b.take());
}

BlockId Fsdp2::plain(const CostedBlock& block, bool backward, const StageParts&) {
  BlockAssembler b(to_text(block.kind));
  b.add(backward ? block.backward : block.forward);
  return pool_.add(b.take());
}

Chain Fsdp2::gathering_forward(const StageParts& s, bool reshard_all, bool reshard_any) {
  Chain chain{{prologue(s), 1}};
  if (s.embedding != nullptr) chain.push_back({plain(*s.embedding, false, s), 1});
  const bool rooted = !root(s).empty();
  const auto role = [&](int i) {
    const bool last = i == s.layers - 1;
    const Before before = i > 0 ? Before::kBlock : rooted ? Before::kRoot : Before::kNothing;
    return ForwardRole{true, i + 2 < s.layers, reshard_any && (!last || reshard_all), before};
  };
  for (int i = 0; i < s.layers;) {
    const ForwardRole r = role(i);
    int count = 1;
    while (i + count < s.layers && role(i + count) == r) ++count;
    chain.push_back({forward(*s.layer, r, s), count});
    i += count;
  }
  if (s.head != nullptr) chain.push_back({plain(*s.head, false, s), 1});
  chain.push_back({forward_end(s), 1});
  return chain;
}

Chain Fsdp2::plain_forward(const StageParts& s) {
  Chain chain;
  if (s.embedding != nullptr) chain.push_back({plain(*s.embedding, false, s), 1});
  chain.push_back({forward(*s.layer, ForwardRole{}, s), s.layers});
  if (s.head != nullptr) chain.push_back({plain(*s.head, false, s), 1});
  return chain;
}

// ---- backward --------------------------------------------------------------------------------

/// The gradients of a unit are reduced or accumulated. `before`: the unit reduced before it, whose
/// buffer is freed now (empty: none). `hidden`: blocks compute beside the reduction.
void Fsdp2::reduce_unit(BlockAssembler& b, const Unit& unit, const Unit& before, ReduceMode mode,
                        bool hidden, const StageParts& s) {
  if (unit.empty()) return;
  const auto parameters = static_cast<double>(unit.parameters);
  if (mode == ReduceMode::kAccumulate || mode == ReduceMode::kAccumulateFirst) {
    const bool first = mode == ReduceMode::kAccumulateFirst;
    if (first) b.memory(MemoryPool::kCompute, MemoryComponent::kGradients, kFp32 * unit.parameters);
    b.add(compute_copy("fsdp.accumulate", parameters * (first ? kFirstAddBytes : kLaterAddBytes)),
          host_.eager_backward);
    b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, -unit.gradients);
    return;
  }
  Operation copy = compute_copy("fsdp.reduce_copy_in", kReduceCopyIn * parameters);
  copy.waits.push_back(kReducedSlot);
  b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, -kFp32 * before.parameters);
  b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, kFp32 * unit.parameters);
  const std::int16_t copied = b.add(copy, host_.eager_backward);
  b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, -unit.gradients);
  Operation op = collective("fsdp.reduce_scatter", CollectiveKind::kReduceScatter,
                            static_cast<double>(kFp32 * unit.parameters), s, hidden);
  op.after.push_back(copied);
  op.records = kReducedSlot;
  b.add(op, host_.collective);
  const std::int64_t shard_bytes = kFp32 * shard(unit, s);
  b.memory(MemoryPool::kReduce, MemoryComponent::kGradients, shard_bytes);
  if (mode == ReduceMode::kScatterAccumulate) {
    b.memory(MemoryPool::kReduce, MemoryComponent::kGradients, -shard_bytes);
  }
}

BlockId Fsdp2::backward(const CostedBlock& block, const BackwardRole& role, const StageParts& s) {
  return remember(backward_, block, role, s, [&] {
    BlockAssembler b("decoder.backward");
    const Unit unit = unit_of(&block);
    b.host(host_.sharded_unit);
    if (role.gathers_now) {
      b.memory(MemoryPool::kGather, MemoryComponent::kGathered, unit.gathered);
      b.operation(gather(b, unit, s, false)).records = kGatheredSlot;
    }
    std::int16_t copied = -1;
    if (role.gathers || role.gathers_now) {
      wait_and_copy_out(b, unit);
      b.memory(MemoryPool::kGather, MemoryComponent::kGathered, -unit.gathered);
      copied = b.last();
    }
    if (role.next) {
      b.memory(MemoryPool::kGather, MemoryComponent::kGathered, unit.gathered);
      const std::int16_t gathered = gather(b, unit, s, true);
      b.operation(gathered).records = kGatheredSlot;
      if (copied >= 0) {
        b.operation(static_cast<std::int16_t>(gathered - 1)).after.push_back(copied);
      }
    }
    b.add(block.backward);
    if (role.reshard) b.memory(MemoryPool::kCompute, MemoryComponent::kGathered, -unit.gathered);
    reduce_unit(b, unit, role.first_reduce ? Unit{} : unit, role.reduce, true, s);
    return b.take();
  });
}

/// After the blocks: the root unit's gradients, exposed.
BlockId Fsdp2::root_backward_end(ReduceMode mode, const StageParts& s) {
  BlockAssembler b("fsdp.backward_end");
  const Unit unit = root(s), layer = s.layers > 0 ? unit_of(s.layer) : Unit{};
  const bool scatters = mode == ReduceMode::kScatter || mode == ReduceMode::kScatterAccumulate;
  b.host(host_.sharded_unit);
  if (scatters) b.memory(MemoryPool::kCompute, MemoryComponent::kGathered, -unit.gathered);
  reduce_unit(b, unit, layer, mode, false, s);
  if (scatters) {  // the last buffer goes when the backward pass ends
    b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced,
             -kFp32 * (unit.empty() ? layer : unit).parameters);
  }
  return pool_.add(b.take());
}

Chain Fsdp2::backward_chain(const StageParts& s, bool resharded, bool last_resharded,
                            ReduceMode mode) {
  Chain chain;
  if (s.head != nullptr) chain.push_back({plain(*s.head, true, s), 1});
  const bool scatters = mode == ReduceMode::kScatter || mode == ReduceMode::kScatterAccumulate;
  const auto role = [&](int i) {  // i counts backwards: 0 is the last block
    const bool first = i == 0, last = i == s.layers - 1;
    return BackwardRole{resharded && first && last_resharded, resharded && !first,
                        resharded && !last, scatters || resharded, scatters && first, mode};
  };
  for (int i = 0; i < s.layers;) {
    const BackwardRole r = role(i);
    int count = 1;
    while (i + count < s.layers && role(i + count) == r) ++count;
    chain.push_back({backward(*s.layer, r, s), count});
    i += count;
  }
  if (s.embedding != nullptr) chain.push_back({plain(*s.embedding, true, s), 1});
  chain.push_back({root_backward_end(mode, s), 1});
  return chain;
}

// ---- after the last microbatch of a pipeline -------------------------------------------------

/// One unit's accumulated gradients are reduced; the next one's copy-in waits for it.
BlockId Fsdp2::reduce(const Unit& unit, bool first, const StageParts& s) {
  BlockAssembler b("fsdp.reduce");
  b.host(host_.sharded_unit);
  b.memory(MemoryPool::kCompute, MemoryComponent::kGathered, -unit.gathered);
  Operation copy = compute_copy("fsdp.reduce_copy_in",
                                kReduceCopyInFp32 * static_cast<double>(unit.parameters));
  copy.waits.push_back(kReducedSlot);
  if (!first) {
    b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, -kFp32 * unit.parameters);
  }
  b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, kFp32 * unit.parameters);
  const std::int16_t copied = b.add(copy, host_.eager_backward);
  b.memory(MemoryPool::kCompute, MemoryComponent::kGradients, -kFp32 * unit.parameters);
  Operation op = collective("fsdp.reduce_scatter", CollectiveKind::kReduceScatter,
                            static_cast<double>(kFp32 * unit.parameters), s, false);
  op.after.push_back(copied);
  op.records = kReducedSlot;
  b.add(op, host_.collective);
  b.memory(MemoryPool::kReduce, MemoryComponent::kGradients, kFp32 * shard(unit, s));
  return pool_.add(b.take());
}

BlockId Fsdp2::reduce_end(const Unit& last, const StageParts&) {
  BlockAssembler b("fsdp.reduce_end");
  b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, -kFp32 * last.parameters);
  return pool_.add(b.take());
}

Chain Fsdp2::reduce_chain(const StageParts& s) {
  Chain chain;
  const Unit unit = root(s), layer = unit_of(s.layer);
  if (!unit.empty()) {
    chain.push_back({reduce(unit, true, s), 1});
    chain.push_back({reduce_end(unit, s), 1});
  }
  if (s.layers > 0) {
    chain.push_back({reduce(layer, true, s), 1});
    if (s.layers > 1) chain.push_back({reduce(layer, false, s), s.layers - 1});
    chain.push_back({reduce_end(layer, s), 1});
  }
  return chain;
}

// ---- end of the step -------------------------------------------------------------------------

BlockId Fsdp2::norm(const StageParts& s) {
  BlockAssembler b("grad_norm");
  const Unit all = total(s);
  Operation op;
  op.name = "grad_norm";
  op.seconds = software_.clip_grad_norm
                   ? costs_.memory_bound(KernelFamily::kOptimizer,
                                         static_cast<double>(kFp32 * shard(all, s)))
                   : 0;
  op.stream = kComputeStream;
  op.family = KernelFamily::kOptimizer;
  op.category = Category::kOptimizer;
  op.waits.push_back(kReducedSlot);
  b.add(op, host_.eager_forward * all.tensors);
  return pool_.add(b.take());
}

BlockId Fsdp2::optimizer(const StageParts& s) {
  BlockAssembler b("optimizer");
  const Unit all = total(s);
  const auto parameters = static_cast<double>(shard(all, s));
  const int passes = software_.optimizer_fused ? 1 : kForeachKernels;
  double bytes = software_.optimizer_fused ? kFusedAdam : kForeachAdam;
  if (software_.clip_grad_norm) bytes += kClip;
  if (s.fp8 && software_.fp8_all_gather) bytes += kFp32;  // scales of the next step's weights
  Operation op;
  op.name = software_.optimizer_fused ? "adamw.fused" : "adamw.foreach";
  op.seconds = costs_.memory_bound(KernelFamily::kOptimizer, bytes * parameters, passes);
  op.stream = kComputeStream;
  op.family = KernelFamily::kOptimizer;
  op.category = Category::kOptimizer;
  if (!software_.optimizer_fused) {  // the square roots of the second moments
    const auto temporary = kFp32 * shard(all, s);
    b.memory(MemoryPool::kCompute, MemoryComponent::kTemporaries, temporary);
    b.add(op, host_.eager_forward * all.tensors);
    b.memory(MemoryPool::kCompute, MemoryComponent::kTemporaries, -temporary);
  } else {
    b.add(op, host_.eager_forward * all.tensors);
  }
  return pool_.add(b.take());
}

StageChains Fsdp2::chains(const StageParts& s) {
  StageChains out;
  const auto set = [&](ActionKind kind, ChainId chain) {
    out.chain[static_cast<std::size_t>(kind)] = chain;
  };
  if (s.pipeline) {
    set(ActionKind::kForwardFirst, add(gathering_forward(s, false, false)));
    set(ActionKind::kForward, add(plain_forward(s)));
    const ChainId later = add(backward_chain(s, false, false, ReduceMode::kAccumulate));
    const ChainId first = add(backward_chain(s, false, false, ReduceMode::kAccumulateFirst));
    set(ActionKind::kBackward, later);
    set(ActionKind::kBackwardLast, later);
    set(ActionKind::kBackwardFirst, first);
    set(ActionKind::kBackwardOnly, first);
    set(ActionKind::kReduce, add(reduce_chain(s)));
  } else {
    const bool resharded = s.reshard != Reshard::kNever;
    const bool all = s.reshard == Reshard::kAlways;
    const ChainId forward = add(gathering_forward(s, all, resharded));
    const ChainId first = add(backward_chain(s, resharded, all, ReduceMode::kScatter));
    set(ActionKind::kForward, forward);
    set(ActionKind::kForwardFirst, forward);
    set(ActionKind::kBackwardFirst, first);
    set(ActionKind::kBackwardOnly, first);
    if (s.accumulates) {
      const ChainId later =
          add(backward_chain(s, resharded, all, ReduceMode::kScatterAccumulate));
      set(ActionKind::kBackward, later);
      set(ActionKind::kBackwardLast, later);
    }
  }
  set(ActionKind::kGradNorm, add({{norm(s), 1}}));
  set(ActionKind::kOptimizer, add({{optimizer(s), 1}}));
  return out;
}

Resident Fsdp2::resident(const StageParts& s) const {
  Resident out{};
  const std::int64_t parameters = shard(total(s), s);
  out[static_cast<std::size_t>(MemoryComponent::kParameters)] = kFp32 * parameters;
  out[static_cast<std::size_t>(MemoryComponent::kOptimizer)] = 2 * kFp32 * parameters;
  return out;
}

}  // namespace

std::unique_ptr<ShardingStrategy> make_fsdp2(const SoftwareStack& software, const Costs& costs,
                                             ProgramPool& pool) {
  return std::make_unique<Fsdp2>(software, costs, pool);
}

}  // namespace forerun

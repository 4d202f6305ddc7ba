#include "model/sharding/fsdp2_blocks.hpp"

#include <algorithm>

namespace forerun {
namespace {

constexpr auto kGatheredSlot = static_cast<std::int8_t>(slot_of(Event::kGathered));
constexpr auto kGatheredNextSlot = static_cast<std::int8_t>(slot_of(Event::kGatheredNext));
constexpr auto kReducedSlot = static_cast<std::int8_t>(slot_of(Event::kReduced));
constexpr auto kComputeStream = static_cast<std::int8_t>(slot_of(Stream::kCompute));
constexpr auto kFsdpStream = static_cast<std::int8_t>(slot_of(Stream::kFsdp));

/// Bytes that copying a parameter's shard into a gathering buffer reads and writes: master to bf16
/// and once more (master + 2 + 2 + 2); for fp8 scale, clamp and cast in fp32, then the copy.
/// A flat parameter (FSDP1) is cast and gathered where it lies.
constexpr double kCopyInBf16 = 2 + 2 + 2, kCast = 2, kCopyInFp8 = 8 + 8 + 5 + 2;
/// Gradients into the reduction's buffer: bf16 to the buffer's type; or from it when accumulated.
constexpr double reduce_copy_in(int gradient) {
  return 2 + gradient;
}
/// Accumulating a bf16 gradient: the first time a cast, later read both and write.
constexpr double add_bytes(int gradient, bool first) {
  return 2 + gradient + (first ? 0 : gradient);
}

int gradient_size(const StageParts& s) {
  return size_of(s.states.gradient);
}
std::int64_t gradient_bytes(const Fsdp2Unit& unit, const StageParts& s) {
  return gradient_size(s) * unit.parameters;
}

Fsdp2Unit operator+(const Fsdp2Unit& a, const Fsdp2Unit& b) {
  return {a.parameters + b.parameters,
          a.gathered + b.gathered,
          a.gradients + b.gradients,
          a.tensors + b.tensors,
          a.expert_parameters + b.expert_parameters,
          a.expert_gathered + b.expert_gathered};
}

/// FSDP modules that a unit consists of: experts are one of their own where they are cut otherwise.
int modules_of(const Fsdp2Unit& unit, const StageParts& s) {
  return unit.expert_parameters > 0 && !(s.expert_shard == s.shard) ? 2 : 1;
}

std::int64_t cut(std::int64_t parameters, const Span& over) {
  return (parameters + over.ranks - 1) / over.ranks;
}

}  // namespace

// ---- units
// ---------------------------------------------------------------------------------------

Fsdp2Unit unit_of(const CostedBlock* block) {
  if (block == nullptr) return {};
  const BlockKernels& k = *block->kernels;
  return {k.parameter_count,   k.gathered_bytes, k.gradient_bytes,
          k.parameter_tensors, k.expert_count,   k.expert_gathered_bytes};
}

Fsdp2Unit root_unit(const StageParts& s) {
  return unit_of(s.embedding) + unit_of(s.head);
}

Fsdp2Unit whole_unit(const StageParts& s) {
  Fsdp2Unit sum = root_unit(s);
  for (int i = 0; i < s.layers; ++i)
    sum = sum + unit_of(s.layer_at(i));
  return sum;
}

std::int64_t shard_of(const Fsdp2Unit& unit, const StageParts& s) {
  if (unit.expert_parameters == 0) return cut(unit.parameters, s.shard);
  return cut(unit.parameters - unit.expert_parameters, s.shard) +
         cut(unit.expert_parameters, s.expert_shard);
}

std::size_t Fsdp2Blocks::Wrapping::hash() const {
  return hash_of(reinterpret_cast<std::uintptr_t>(block), role, shard.ranks, shard.nodes,
                 shard.tier, replicate.ranks, freed, fp8, states.master, states.gradient,
                 reinterpret_cast<std::uintptr_t>(ahead), expert_shard.ranks);
}

// ---- operations
// ----------------------------------------------------------------------------------

Operation Fsdp2Blocks::compute_copy(std::string_view name, double bytes) const {
  Operation op;
  op.name = name;
  op.seconds = strided(bytes);
  op.stream = kComputeStream;
  op.family = KernelFamily::kStrided;
  op.category = Category::kPointwise;
  return op;
}

Operation Fsdp2Blocks::collective(std::string_view name, CollectiveKind kind, double bytes,
                                  double of_experts, const StageParts& s, bool hidden) const {
  const auto seconds = [&](double part, const Span& span) {
    const double alone = costs_.collective(kind, part, span);
    return hidden ? alone / costs_.rate_beside_kernels(span) : alone;
  };
  const bool apart = of_experts > 0 && !(s.expert_shard == s.shard);
  Operation op;
  op.name = name;
  op.seconds = apart ? seconds(bytes - of_experts, s.shard) + seconds(of_experts, s.expert_shard)
                     : seconds(bytes, s.shard);
  op.stream = kFsdpStream;
  op.family = KernelFamily::kCollective;
  op.collective = kind;
  op.category = Category::kExposedDp;
  op.slows = hidden && s.shard.ranks > 1;
  return op;
}

std::int16_t Fsdp2Blocks::gather(BlockAssembler& b, const Fsdp2Unit& unit, const StageParts& s,
                                 bool hidden) const {
  Operation copy;
  copy.name = "fsdp.copy_in";
  const double per_parameter = s.fp8 && software_.fp8_all_gather
                                   ? kCopyInFp8
                                   : (flat() ? kCast : kCopyInBf16) + size_of(s.states.master);
  copy.seconds = strided(per_parameter * static_cast<double>(shard_of(unit, s)));
  copy.stream = kFsdpStream;
  copy.family = KernelFamily::kStrided;
  copy.category = Category::kExposedDp;
  b.add(copy);
  return b.add(
      collective("fsdp.all_gather", CollectiveKind::kAllGather, static_cast<double>(unit.gathered),
                 static_cast<double>(unit.expert_gathered), s, hidden),
      host_.collective * modules_of(unit, s));
}

void Fsdp2Blocks::wait_and_copy_out(BlockAssembler& b, const Fsdp2Unit& unit) const {
  Operation copy =
      compute_copy("fsdp.copy_out", flat() ? 0 : 2 * static_cast<double>(unit.gathered));
  copy.waits.push_back(kGatheredSlot);
  b.add(copy, host_.eager_forward);
  b.memory(MemoryPool::kCompute, MemoryComponent::kGathered, unit.gathered);
}

/// The reduce-scatter of a unit; where shards have copies (HSDP) their sum over the copies follows.
void Fsdp2Blocks::reduced(BlockAssembler& b, Operation scatter, const Fsdp2Unit& unit,
                          const StageParts& s, bool hidden) const {
  const bool copies = s.replicate.ranks > 1;
  if (!copies) scatter.records = kReducedSlot;
  b.add(scatter, host_.collective);
  if (!copies) return;
  StageParts over = s;
  over.shard = s.replicate;
  Operation sum =
      collective("fsdp.all_reduce", CollectiveKind::kAllReduce,
                 static_cast<double>(gradient_size(s) * shard_of(unit, s)), 0, over, hidden);
  sum.records = kReducedSlot;
  b.add(sum, host_.collective);
}

/// The gradients of a unit are reduced or accumulated. `before`: the unit reduced before it, whose
/// buffer is freed now (empty: none). `hidden`: blocks compute beside the reduction.
void Fsdp2Blocks::reduce_unit(BlockAssembler& b, const Fsdp2Unit& unit, const Fsdp2Unit& before,
                              ReduceMode mode, bool hidden, const StageParts& s) const {
  if (unit.empty()) return;
  const auto parameters = static_cast<double>(unit.parameters);
  if (mode == ReduceMode::kAccumulate || mode == ReduceMode::kAccumulateFirst) {
    const bool first = mode == ReduceMode::kAccumulateFirst;
    if (first) b.memory(MemoryPool::kCompute, MemoryComponent::kGradients, gradient_bytes(unit, s));
    b.add(compute_copy("fsdp.accumulate", parameters * add_bytes(gradient_size(s), first)),
          host_.eager_backward);
    b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, -unit.gradients);
    return;
  }
  Operation copy =
      compute_copy("fsdp.reduce_copy_in", reduce_copy_in(gradient_size(s)) * parameters);
  copy.waits.push_back(kReducedSlot);
  b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, -gradient_bytes(before, s));
  b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, gradient_bytes(unit, s));
  const std::int16_t copied = b.add(copy, host_.eager_backward);
  b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, -unit.gradients);
  Operation op =
      collective("fsdp.reduce_scatter", CollectiveKind::kReduceScatter,
                 static_cast<double>(gradient_bytes(unit, s)),
                 static_cast<double>(gradient_size(s) * unit.expert_parameters), s, hidden);
  op.after.push_back(copied);
  reduced(b, op, unit, s, hidden);
  const std::int64_t shard_bytes = gradient_size(s) * shard_of(unit, s);
  b.memory(MemoryPool::kReduce, MemoryComponent::kGradients, shard_bytes);
  if (mode == ReduceMode::kScatterAccumulate) {
    b.memory(MemoryPool::kReduce, MemoryComponent::kGradients, -shard_bytes);
  }
}

// ---- forward
// -------------------------------------------------------------------------------------

/// Before the first block: the root unit is gathered, exposed, and the first two blocks' gathers
/// are issued.
BlockId Fsdp2Blocks::prologue(const StageParts& s) {
  BlockAssembler b(draft_, "fsdp.prologue");
  const Fsdp2Unit unit = root_unit(s);
  b.host(host_.sharded_unit);
  // The gathering streams wait for what the compute stream has in front of it: for the optimizer,
  // and in a pipeline for the message that this pass begins with (FSDPState._root_pre_forward).
  Operation ready;
  ready.name = "fsdp.wait_stream";
  ready.stream = kComputeStream;
  b.add(ready);
  const auto waits_for = [&b](std::int16_t copy_in) { b.operation(copy_in).after.push_back(0); };
  std::int16_t copied = -1;
  if (!unit.empty()) {
    const std::int16_t gathered = gather(b, unit, s, false);
    waits_for(static_cast<std::int16_t>(gathered - 1));
    Operation copy =
        compute_copy("fsdp.copy_out", flat() ? 0 : 2 * static_cast<double>(unit.gathered));
    copy.after.push_back(gathered);
    copied = b.add(copy, host_.eager_forward);
    b.memory(MemoryPool::kGather, MemoryComponent::kGathered, unit.gathered);
    b.memory(MemoryPool::kCompute, MemoryComponent::kGathered, unit.gathered);
  }
  // The host reaches the blocks after this one and the embedding.
  const double embedding = s.embedding != nullptr ? s.embedding->forward.host_seconds : 0;
  for (int i = 0; i < std::min(2, s.layers); ++i) {
    const double ahead = embedding + i * (s.layer_at(0)->forward.host_seconds + host_.sharded_unit);
    const std::int16_t gathered = gather(b, unit_of(s.layer_at(i)), s, true);
    waits_for(static_cast<std::int16_t>(gathered - 1));
    b.operation(gathered).issued_at += ahead;
    b.operation(gathered).records = i == 0 ? kGatheredSlot : kGatheredNextSlot;
    if (i == 1 && copied >= 0) b.operation(gathered).after.push_back(copied);
  }
  return pool_.add(b.block());
}

BlockId Fsdp2Blocks::forward(const ForwardRole& role, const StageParts& s) {
  const CostedBlock& block = *role.block;
  const std::int64_t freed = role.before == Before::kRoot ? root_unit(s).gathered : 0;
  const Wrapping key{role.block, role.number(), s.shard,   s.replicate, s.states,
                     freed,      s.fp8,         role.next, role.former, s.expert_shard};
  return forward_.find_or_make(key, [&] {
    BlockAssembler b(draft_, "decoder.forward");
    const Fsdp2Unit unit = unit_of(&block);
    b.host(host_.sharded_unit * modules_of(unit, s));
    std::int16_t ahead = -1;
    if (role.gathers) {
      b.memory(MemoryPool::kGather, MemoryComponent::kGathered, unit.gathered);
      wait_and_copy_out(b, unit);
      b.memory(MemoryPool::kGather, MemoryComponent::kGathered,
               role.before == Before::kRoot    ? -freed
               : role.before == Before::kBlock ? -unit_of(role.former).gathered
                                               : 0);
      const std::int16_t copied = b.last();
      Operation shift;  // what was the next gather is now this block's successor's
      shift.name = "fsdp.next";
      shift.waits.push_back(kGatheredNextSlot);
      shift.records = kGatheredSlot;
      b.add(shift);
      if (role.ahead) {
        ahead = gather(b, unit_of(role.next), s, true);
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
    return pool_.add(b.block());
  });
}

/// The last gathering buffer is freed when the root's forward ends.
BlockId Fsdp2Blocks::forward_end(const StageParts& s) {
  BlockAssembler b(draft_, "fsdp.forward_end");
  const std::int64_t buffer =
      s.layers > 0 ? unit_of(s.layer_at(s.layers - 1)).gathered : root_unit(s).gathered;
  b.memory(MemoryPool::kGather, MemoryComponent::kGathered, -buffer);
  return pool_.add(b.block());
}

BlockId Fsdp2Blocks::plain(const CostedBlock& block, bool backward) {
  return plain_.find_or_make({&block, backward, {}, {}, {}, 0, false}, [&] {
    BlockAssembler b(draft_, to_text(block.kind));
    b.add(backward ? block.backward : block.forward);
    return pool_.add(b.block());
  });
}

// ---- backward
// ------------------------------------------------------------------------------------

BlockId Fsdp2Blocks::backward(const BackwardRole& role, const StageParts& s) {
  const CostedBlock& block = *role.block;
  const Wrapping key{role.block, role.number(), s.shard,        s.replicate, s.states,
                     0,          s.fp8,         role.preceding, role.former, s.expert_shard};
  return backward_.find_or_make(key, [&] {
    BlockAssembler b(draft_, "decoder.backward");
    const Fsdp2Unit unit = unit_of(&block);
    b.host(host_.sharded_unit * modules_of(unit, s));
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
      const Fsdp2Unit next = unit_of(role.preceding);
      b.memory(MemoryPool::kGather, MemoryComponent::kGathered, next.gathered);
      const std::int16_t gathered = gather(b, next, s, true);
      b.operation(gathered).records = kGatheredSlot;
      if (copied >= 0) {
        b.operation(static_cast<std::int16_t>(gathered - 1)).after.push_back(copied);
      }
    }
    b.add(block.backward);
    if (role.reshard) b.memory(MemoryPool::kCompute, MemoryComponent::kGathered, -unit.gathered);
    reduce_unit(b, unit, unit_of(role.former), role.reduce, true, s);
    return pool_.add(b.block());
  });
}

/// After the blocks: the root unit's gradients, exposed.
BlockId Fsdp2Blocks::backward_end(ReduceMode mode, const StageParts& s) {
  BlockAssembler b(draft_, "fsdp.backward_end");
  const Fsdp2Unit unit = root_unit(s), layer = s.layers > 0 ? unit_of(s.layer_at(0)) : Fsdp2Unit{};
  b.host(host_.sharded_unit);
  if (scatters(mode)) b.memory(MemoryPool::kCompute, MemoryComponent::kGathered, -unit.gathered);
  reduce_unit(b, unit, layer, mode, false, s);
  if (scatters(mode)) {  // the last buffer goes when the backward pass ends
    b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced,
             -gradient_bytes(unit.empty() ? layer : unit, s));
  }
  return pool_.add(b.block());
}

// ---- after the last microbatch of a pipeline
// -----------------------------------------------------

/// One unit's accumulated gradients are reduced; the next one's copy-in waits for it.
BlockId Fsdp2Blocks::reduce(const Fsdp2Unit& unit, const Fsdp2Unit& former, const StageParts& s) {
  BlockAssembler b(draft_, "fsdp.reduce");
  b.host(host_.sharded_unit);
  b.memory(MemoryPool::kCompute, MemoryComponent::kGathered, -unit.gathered);
  Operation copy =
      compute_copy("fsdp.reduce_copy_in", 2.0 * static_cast<double>(gradient_bytes(unit, s)));
  copy.waits.push_back(kReducedSlot);
  b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, -gradient_bytes(former, s));
  b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, gradient_bytes(unit, s));
  const std::int16_t copied = b.add(copy, host_.eager_backward);
  b.memory(MemoryPool::kCompute, MemoryComponent::kGradients, -gradient_bytes(unit, s));
  Operation op =
      collective("fsdp.reduce_scatter", CollectiveKind::kReduceScatter,
                 static_cast<double>(gradient_bytes(unit, s)),
                 static_cast<double>(gradient_size(s) * unit.expert_parameters), s, false);
  op.after.push_back(copied);
  reduced(b, op, unit, s, false);
  b.memory(MemoryPool::kReduce, MemoryComponent::kGradients, gradient_size(s) * shard_of(unit, s));
  return pool_.add(b.block());
}

BlockId Fsdp2Blocks::reduce_end(const Fsdp2Unit& last, const StageParts& s) {
  BlockAssembler b(draft_, "fsdp.reduce_end");
  b.memory(MemoryPool::kCompute, MemoryComponent::kUnreduced, -gradient_bytes(last, s));
  return pool_.add(b.block());
}

// ---- end of the step
// -----------------------------------------------------------------------------

BlockId Fsdp2Blocks::norm(const StageParts& s) {
  BlockAssembler b(draft_, "grad_norm");
  const Fsdp2Unit all = whole_unit(s);
  Operation op;
  op.name = "grad_norm";
  op.seconds = software_.clip_grad_norm
                   ? costs_.memory_bound(KernelFamily::kOptimizer,
                                         static_cast<double>(gradient_size(s) * shard_of(all, s)))
                   : 0;
  op.stream = kComputeStream;
  op.family = KernelFamily::kOptimizer;
  op.category = Category::kOptimizer;
  op.waits.push_back(kReducedSlot);
  b.add(op, host_.eager_forward * all.tensors);
  return pool_.add(b.block());
}

BlockId Fsdp2Blocks::optimizer(const StageParts& s) {
  BlockAssembler b(draft_, "optimizer");
  const Fsdp2Unit all = whole_unit(s);
  const auto parameters = static_cast<double>(shard_of(all, s));
  OptimizerStates states = s.states;
  states.parameter = states.master;  // the shard is the only copy
  const bool fused = software_.optimizer_fused;
  const int passes = fused ? 1 : foreach_kernels(states);
  double bytes = fused ? fused_step_bytes(states) : foreach_step_bytes(states);
  if (software_.clip_grad_norm) bytes += 2 * gradient_size(s);  // reads and writes the gradients
  if (s.fp8 && software_.fp8_all_gather)
    bytes += size_of(states.master);  // scales of the next step's weights
  Operation op;
  op.name = fused ? "optimizer.fused" : "optimizer.foreach";
  op.seconds = costs_.memory_bound(KernelFamily::kOptimizer, bytes * parameters, passes);
  op.stream = kComputeStream;
  op.family = KernelFamily::kOptimizer;
  op.category = Category::kOptimizer;
  if (!fused) {  // the square roots of the second moments
    const auto temporary = size_of(s.states.moment) * shard_of(all, s);
    b.memory(MemoryPool::kCompute, MemoryComponent::kTemporaries, temporary);
    b.add(op, host_.eager_forward * all.tensors);
    b.memory(MemoryPool::kCompute, MemoryComponent::kTemporaries, -temporary);
  } else {
    b.add(op, host_.eager_forward * all.tensors);
  }
  return pool_.add(b.block());
}

}  // namespace forerun

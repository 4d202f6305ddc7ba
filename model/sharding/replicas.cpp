// Parameters that every data-parallel rank holds: DDP (ZeRO 0), the distributed optimizer (ZeRO 1)
// and ZeRO 2, as torch's DistributedDataParallel, Megatron-Core and nanotron do it. What differs
// between them is data of the stack (ReplicaRules).
//
//  - Gradients are added to a buffer as soon as the backward pass makes them (model/block_kernels),
//    microbatch after microbatch.
//  - With the last microbatch they are reduced bucket by bucket beside the backward pass, or, where
//    the stack does not overlap, all at the end. ZeRO 1 and 2 reduce by reduce-scatter (a stack may
//    take an all-reduce all the same), ZeRO 0 by all-reduce.
//  - ZeRO 1 and 2 step their own part and gather the parameters, beside the next forward pass or
//    exposed behind the optimizer.
//  - A block's part of a bucket costs its share of the bucket's collective, so that the size of
//    messages is the stack's.

#include <algorithm>

#include "base/memo.hpp"
#include "model/sharding/block_assembler.hpp"
#include "model/sharding/sharding_families.hpp"

namespace forerun {
namespace {

constexpr auto kCompute = static_cast<std::int8_t>(slot_of(Stream::kCompute));
constexpr auto kData = static_cast<std::int8_t>(slot_of(Stream::kFsdp));
constexpr auto kReduced = static_cast<std::int8_t>(slot_of(Event::kReduced));
constexpr auto kGathered = static_cast<std::int8_t>(slot_of(Event::kGathered));

/// Parameters of a block or a stage on this rank; experts lie on other ranks than the rest.
struct Counts {
  double dense = 0, experts = 0;
  int tensors = 0;
  Counts& operator+=(const Counts& other) {
    dense += other.dense;
    experts += other.experts;
    tensors += other.tensors;
    return *this;
  }
  [[nodiscard]] double all() const { return dense + experts; }
};

Counts counts_of(const CostedBlock* block) {
  if (block == nullptr) return {};
  const BlockKernels& k = *block->kernels;
  return {static_cast<double>(k.parameter_count - k.expert_count),
          static_cast<double>(k.expert_count), k.parameter_tensors};
}
Counts counts_of(const StageParts& s) {
  Counts sum = counts_of(s.embedding);
  for (int i = 0; i < s.layers; ++i)
    sum += counts_of(s.layer_at(i));
  sum += counts_of(s.head);
  return sum;
}

class Replicas : public ShardingStrategy {
 public:
  Replicas(const SoftwareStack& software, const Costs& costs, ProgramPool& pool)
      : software_(software), rules_(software.replicas), costs_(costs), pool_(pool) {}

  StageChains chains(const StageParts& stage) override;
  [[nodiscard]] Resident resident(const StageParts& stage) const override;
  [[nodiscard]] std::int64_t gradients_between_steps(const StageParts& /*stage*/) const override {
    return 0;  // the buffers stay
  }

 private:
  enum class Beside : std::uint8_t { kNothing, kReduce, kGather };

  [[nodiscard]] static bool parted(const StageParts& s) {
    return s.zero_stage > 0 && s.data.ranks > 1;
  }
  [[nodiscard]] bool reduces_beside(const StageParts& s) const {
    const bool overlaps = parted(s) ? rules_.overlap_zero1 : rules_.overlap_reduce;
    return overlaps && s.data.ranks > 1;
  }
  [[nodiscard]] bool gathers_beside(const StageParts& s) const {
    return rules_.overlap_gather && parted(s);
  }
  [[nodiscard]] static double own(const StageParts& s) {
    const Counts all = counts_of(s);
    if (!parted(s)) return all.all();
    const double experts =
        all.experts > 0 ? all.experts / static_cast<double>(s.expert_shard.ranks) : 0;
    return all.dense / static_cast<double>(s.data.ranks) + experts;
  }

  [[nodiscard]] double share_of_bucket(CollectiveKind kind, double part, double stage, int bytes,
                                       const Span& span, bool beside) const;
  [[nodiscard]] Operation collective(std::string_view name, CollectiveKind kind, const Counts& part,
                                     int bytes, const StageParts& s, bool beside) const;
  [[nodiscard]] Operation reduction(const Counts& part, const StageParts& s, bool beside) const;
  [[nodiscard]] Operation gathering(const Counts& part, const StageParts& s, bool beside) const;
  void add_layers(ChainDraft& chain, bool backward, Beside beside, const StageParts& s);
  BlockId pass(const CostedBlock& block, bool backward, Beside beside, const StageParts& s);
  BlockId first_gather(const StageParts& s);
  ChainId forward(const StageParts& s, bool gathers);
  ChainId backward(const StageParts& s, bool reduces);
  BlockId reduce(const StageParts& s);
  BlockId norm(const StageParts& s);
  BlockId optimizer(const StageParts& s);

  struct PassKey {
    const CostedBlock* block = nullptr;
    bool backward = false;
    Beside beside = Beside::kNothing;
    Span data, experts;
    int zero_stage = 0;
    DType gradient = DType::kFp32, parameter = DType::kBf16;
    double stage_dense = 0, stage_experts = 0;  // which set the buckets of a collective
    bool operator==(const PassKey&) const = default;
    [[nodiscard]] std::size_t hash() const {
      return hash_of(reinterpret_cast<std::uintptr_t>(block), backward, beside, data.ranks,
                     data.nodes, experts.ranks, zero_stage, gradient, parameter, stage_dense,
                     stage_experts);
    }
  };

  const SoftwareStack& software_;
  const ReplicaRules& rules_;
  const Costs& costs_;
  ProgramPool& pool_;
  BlockDraft draft_;
  Memo<PassKey, BlockId> passes_;
};

/// The share of `part` parameters in the collectives of their buckets.
double Replicas::share_of_bucket(CollectiveKind kind, double part, double stage, int bytes,
                                 const Span& span, bool beside) const {
  if (part == 0 || span.ranks <= 1) return 0;
  const double wanted =
      std::max(rules_.bucket_parameters, rules_.bucket_per_rank * static_cast<double>(span.ranks));
  const double bucket = std::max(1.0, std::min(stage, wanted));
  const double seconds = costs_.collective(kind, bucket * bytes, span) * (part / bucket);
  return beside ? seconds / costs_.rate_beside_kernels(span) : seconds;
}

Operation Replicas::collective(std::string_view name, CollectiveKind kind, const Counts& part,
                               int bytes, const StageParts& s, bool beside) const {
  const Counts stage = counts_of(s);
  Operation op;
  op.name = name;
  op.seconds = share_of_bucket(kind, part.dense, stage.dense, bytes, s.data, beside) +
               share_of_bucket(kind, part.experts, stage.experts, bytes, s.expert_shard, beside);
  op.stream = kData;
  op.family = KernelFamily::kCollective;
  op.collective = kind;
  op.category = Category::kExposedDp;
  op.slows = beside;
  return op;
}

Operation Replicas::reduction(const Counts& part, const StageParts& s, bool beside) const {
  const bool scatters = s.zero_stage > 0 && rules_.scatter_gradients;
  return collective(scatters ? "dp.reduce_scatter" : "dp.all_reduce",
                    scatters ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce, part,
                    size_of(s.states.gradient), s, beside);
}

Operation Replicas::gathering(const Counts& part, const StageParts& s, bool beside) const {
  return collective("dp.all_gather", CollectiveKind::kAllGather, part, size_of(s.states.parameter),
                    s, beside);
}

/// A pass of a block: with its share of the reduction behind it, or of the next block's gather
/// before it.
BlockId Replicas::pass(const CostedBlock& block, bool backward, Beside beside,
                       const StageParts& s) {
  const Counts stage = beside == Beside::kNothing ? Counts{} : counts_of(s);
  const PassKey key{&block,
                    backward,
                    beside,
                    s.data,
                    s.expert_shard,
                    s.zero_stage,
                    s.states.gradient,
                    s.states.parameter,
                    stage.dense,
                    stage.experts};
  return passes_.find_or_make(key, [&] {
    BlockAssembler b(draft_, to_text(block.kind));
    if (beside == Beside::kGather) {
      Operation wait;
      wait.name = "dp.wait";
      wait.stream = kCompute;
      wait.waits.push_back(kGathered);
      b.add(wait);
      Operation next = gathering(counts_of(&block), s, true);
      next.records = kGathered;
      b.add(next, software_.host.collective);
    }
    b.add(backward ? block.backward : block.forward);
    if (beside == Beside::kReduce) {
      Operation ready;  // the bucket is complete when the compute stream has come here
      ready.name = "dp.ready";
      ready.stream = kCompute;
      const std::int16_t complete = b.add(ready);
      Operation op = reduction(counts_of(&block), s, true);
      op.after.push_back(complete);
      op.records = kReduced;
      b.add(op, software_.host.collective);
    }
    return pool_.add(b.block());
  });
}

/// The parameters of the first block. The host launches the gathers of all its stages as a step
/// begins, so they wait for one another and for no pass.
BlockId Replicas::first_gather(const StageParts& s) {
  Counts first = counts_of(s.embedding);
  if (s.layers > 0) first += counts_of(s.layer_at(0));
  BlockAssembler b(draft_, "dp.first_gather");
  Operation op = gathering(first, s, false);
  op.records = kGathered;
  b.add(op, software_.host.collective);
  return pool_.add(b.block());
}

/// The passes of a stage's layers; equal neighbours are one link.
void Replicas::add_layers(ChainDraft& chain, bool backward, Beside beside, const StageParts& s) {
  const auto layer = [&](int i) { return s.layer_at(backward ? s.layers - 1 - i : i); };
  for (int i = 0; i < s.layers;) {
    int count = 1;
    while (i + count < s.layers && layer(i + count) == layer(i))
      ++count;
    chain.push_back({pass(*layer(i), backward, beside, s), count});
    i += count;
  }
}

ChainId Replicas::forward(const StageParts& s, bool gathers) {
  const Beside beside = gathers ? Beside::kGather : Beside::kNothing;
  ChainDraft chain;
  if (gathers) chain.push_back({first_gather(s), 1});
  if (s.embedding != nullptr) chain.push_back({pass(*s.embedding, false, Beside::kNothing, s), 1});
  add_layers(chain, false, beside, s);
  if (s.head != nullptr) chain.push_back({pass(*s.head, false, Beside::kNothing, s), 1});
  return pool_.add(Chain(chain));
}

ChainId Replicas::backward(const StageParts& s, bool reduces) {
  const Beside beside = reduces ? Beside::kReduce : Beside::kNothing;
  ChainDraft chain;
  if (s.head != nullptr) chain.push_back({pass(*s.head, true, beside, s), 1});
  add_layers(chain, true, beside, s);
  if (s.embedding != nullptr) chain.push_back({pass(*s.embedding, true, beside, s), 1});
  return pool_.add(Chain(chain));
}

/// What is left to reduce after the last backward pass, and the wait for it.
BlockId Replicas::reduce(const StageParts& s) {
  BlockAssembler b(draft_, "dp.reduce");
  Operation ready;
  ready.name = "dp.ready";
  ready.stream = kCompute;
  const std::int16_t complete = b.add(ready);
  if (s.data.ranks > 1 && !reduces_beside(s)) {
    Operation op = reduction(counts_of(s), s, false);
    op.after.push_back(complete);
    op.records = kReduced;
    b.add(op, software_.host.collective);
  }
  Operation wait;
  wait.name = "dp.wait";
  wait.stream = kCompute;
  wait.waits.push_back(kReduced);
  b.add(wait);
  return pool_.add(b.block());
}

StageChains Replicas::chains(const StageParts& s) {
  StageChains out;
  const auto set = [&](ActionKind kind, ChainId chain) {
    out.chain[static_cast<std::size_t>(kind)] = chain;
  };
  set(ActionKind::kForward, forward(s, false));
  set(ActionKind::kForwardFirst, forward(s, gathers_beside(s)));
  const ChainId plain = backward(s, false);
  const ChainId last = reduces_beside(s) ? backward(s, true) : plain;
  set(ActionKind::kBackward, plain);
  set(ActionKind::kBackwardFirst, plain);
  set(ActionKind::kBackwardLast, last);
  set(ActionKind::kBackwardOnly, last);
  set(ActionKind::kReduce, pool_.add(Chain(ChainDraft{{reduce(s), 1}})));
  set(ActionKind::kGradNorm, pool_.add(Chain(ChainDraft{{norm(s), 1}})));
  set(ActionKind::kOptimizer, pool_.add(Chain(ChainDraft{{optimizer(s), 1}})));
  return out;
}

BlockId Replicas::norm(const StageParts& s) {
  BlockAssembler b(draft_, "grad_norm");
  Operation op;
  op.name = "grad_norm";
  const double bytes = own(s) * size_of(s.states.gradient);
  op.seconds = software_.clip_grad_norm ? costs_.memory_bound(KernelFamily::kOptimizer, bytes) : 0;
  op.stream = kCompute;
  op.family = KernelFamily::kOptimizer;
  op.category = Category::kOptimizer;
  b.add(op, software_.host.eager_forward);
  return pool_.add(b.block());
}

BlockId Replicas::optimizer(const StageParts& s) {
  BlockAssembler b(draft_, "optimizer");
  const OptimizerStates& states = s.states;
  const bool fused = software_.optimizer_fused;
  double bytes = own(s) * (fused ? fused_step_bytes(states) : foreach_step_bytes(states));
  if (software_.clip_grad_norm) bytes += own(s) * 2 * size_of(states.gradient);
  bytes += counts_of(s).all() * size_of(states.gradient);  // zeroed for the next
  Operation op;
  op.name = fused ? "optimizer.fused" : "optimizer.foreach";
  op.seconds =
      costs_.memory_bound(KernelFamily::kOptimizer, bytes, fused ? 1 : foreach_kernels(states));
  op.stream = kCompute;
  op.family = KernelFamily::kOptimizer;
  op.category = Category::kOptimizer;
  const double launches = fused ? 1 : counts_of(s).tensors;
  const std::int16_t stepped = b.add(op, software_.host.eager_forward * launches);
  if (parted(s) && !gathers_beside(s)) {
    Operation gather = gathering(counts_of(s), s, false);
    gather.after.push_back(stepped);
    b.add(gather, software_.host.collective);
  }
  return pool_.add(b.block());
}

Resident Replicas::resident(const StageParts& s) const {
  const double all = counts_of(s).all();
  const OptimizerStates& states = s.states;
  const double master = states.separate_master() ? size_of(states.master) : 0;
  double parameters = all * size_of(states.parameter);
  double gradients = all * size_of(states.gradient);
  double gathered = 0;  // buffers of the gather, which the allocator keeps
  double optimizer = own(s) * (moment_bytes(states) + master);
  if (parted(s)) {
    if (rules_.whole_master) parameters += all * master;
    gathered = own(s) * rules_.slice_bytes + all * rules_.gather_bytes;
  } else if (rules_.bucket_copy && s.data.ranks > 1) {
    gradients += all * size_of(states.parameter);
  }
  Resident out{};
  out[static_cast<std::size_t>(MemoryComponent::kGathered)] = static_cast<std::int64_t>(gathered);
  out[static_cast<std::size_t>(MemoryComponent::kParameters)] =
      static_cast<std::int64_t>(parameters);
  out[static_cast<std::size_t>(MemoryComponent::kGradients)] = static_cast<std::int64_t>(gradients);
  out[static_cast<std::size_t>(MemoryComponent::kOptimizer)] = static_cast<std::int64_t>(optimizer);
  return out;
}

}  // namespace

std::unique_ptr<ShardingStrategy> make_replicas(const SoftwareStack& software, const Costs& costs,
                                                ProgramPool& pool) {
  return std::make_unique<Replicas>(software, costs, pool);
}

}  // namespace forerun

// FSDP2: per-parameter sharding as torch.distributed._composable.fsdp does it (PyTorch 2.6, files
// _fsdp_param_group.py, _fsdp_collectives.py, _fsdp_state.py; torchtitan of December 2024).
//
//  - A unit is a decoder block; embedding, final norm and output projection are the root unit,
//    gathered at the beginning, never resharded, reduced at the end.
//  - Forward: the host runs ahead, so the gather of unit i + 2 is issued while unit i computes; it
//    waits for unit i's copy-out. Backward: unit i - 1 is gathered explicitly when unit i begins.
//  - Copy-in of a gather runs on the gathering stream; copy-out and the copy-in of a reduction run
//  on
//    the compute stream. Gathers and reductions share one communicator: one stream, in order.
//  - The reduction is fp32; the compute stream waits for the previous reduction before it fills the
//    next buffer, so one input buffer is alive.
//  - With a pipeline, parameters are gathered for a stage's first microbatch and kept, gradients
//  are
//    accumulated unsharded in fp32, and after the last backward one unit after the other is
//    reduced.

#include <utility>

#include "model/sharding/fsdp2_blocks.hpp"
#include "model/sharding/sharding_families.hpp"

namespace forerun {
namespace {

/// Appends blocks for `layers` layers. `describe(i)` gives what tells the block of layer i from
/// others and how to make it; equal neighbours become one link.
template <class Describe>
void add_runs(ChainDraft& chain, int layers, Describe describe) {
  for (int i = 0; i < layers;) {
    const auto [key, make] = describe(i);
    int count = 1;
    while (i + count < layers && describe(i + count).first == key)
      ++count;
    chain.push_back({make(), count});
    i += count;
  }
}

class Fsdp2 : public ShardingStrategy {
 public:
  Fsdp2(const SoftwareStack& software, const Costs& costs, ProgramPool& pool)
      : blocks_(software, costs, pool), pool_(pool) {}

  StageChains chains(const StageParts& stage) override;
  [[nodiscard]] Resident resident(const StageParts& stage) const override;
  [[nodiscard]] std::int64_t gradients_between_steps(const StageParts& stage) const override {
    return size_of(stage.states.gradient) * shard_of(whole_unit(stage), stage);
  }

 private:
  ChainDraft gathering_forward(const StageParts& s, bool reshard_all, bool reshard_any);
  ChainDraft plain_forward(const StageParts& s);
  ChainDraft backward_chain(const StageParts& s, bool resharded, bool last_resharded,
                            ReduceMode mode);
  ChainDraft reduce_chain(const StageParts& s);
  ChainId add(const ChainDraft& chain) { return pool_.add(Chain(chain)); }

  Fsdp2Blocks blocks_;
  ProgramPool& pool_;
};

ChainDraft Fsdp2::gathering_forward(const StageParts& s, bool reshard_all, bool reshard_any) {
  ChainDraft chain{{blocks_.prologue(s), 1}};
  if (s.embedding != nullptr) chain.push_back({blocks_.plain(*s.embedding, false), 1});
  const bool rooted = !root_unit(s).empty();
  add_runs(chain, s.layers, [&](int i) {
    const bool last = i == s.layers - 1, ahead = i + 2 < s.layers;
    const Before before = i > 0 ? Before::kBlock : rooted ? Before::kRoot : Before::kNothing;
    const ForwardRole role{true,
                           ahead,
                           reshard_any && (!last || reshard_all),
                           before,
                           s.layer_at(i),
                           ahead ? s.layer_at(i + 2) : nullptr,
                           i > 0 ? s.layer_at(i - 1) : nullptr};
    return std::pair(role, [&, role] { return blocks_.forward(role, s); });
  });
  if (s.head != nullptr) chain.push_back({blocks_.plain(*s.head, false), 1});
  chain.push_back({blocks_.forward_end(s), 1});
  return chain;
}

ChainDraft Fsdp2::plain_forward(const StageParts& s) {
  ChainDraft chain;
  if (s.embedding != nullptr) chain.push_back({blocks_.plain(*s.embedding, false), 1});
  add_runs(chain, s.layers, [&](int i) {
    ForwardRole role;
    role.block = s.layer_at(i);
    return std::pair(role, [&, role] { return blocks_.forward(role, s); });
  });
  if (s.head != nullptr) chain.push_back({blocks_.plain(*s.head, false), 1});
  return chain;
}

ChainDraft Fsdp2::backward_chain(const StageParts& s, bool resharded, bool last_resharded,
                                 ReduceMode mode) {
  ChainDraft chain;
  if (s.head != nullptr) chain.push_back({blocks_.plain(*s.head, true), 1});
  add_runs(chain, s.layers, [&](int i) {  // i counts backwards: 0 is the last block
    const bool first = i == 0, last = i == s.layers - 1;
    const auto block = [&](int back) { return s.layer_at(s.layers - 1 - back); };
    const BackwardRole role{resharded && first && last_resharded,
                            resharded && !first,
                            resharded && !last,
                            scatters(mode) || resharded,
                            scatters(mode) && first,
                            mode,
                            block(i),
                            resharded && !last ? block(i + 1) : nullptr,
                            scatters(mode) && !first ? block(i - 1) : nullptr};
    return std::pair(role, [&, role] { return blocks_.backward(role, s); });
  });
  if (s.embedding != nullptr) chain.push_back({blocks_.plain(*s.embedding, true), 1});
  chain.push_back({blocks_.backward_end(mode, s), 1});
  return chain;
}

ChainDraft Fsdp2::reduce_chain(const StageParts& s) {
  ChainDraft chain;
  const Fsdp2Unit unit = root_unit(s);
  if (!unit.empty()) {
    chain.push_back({blocks_.reduce(unit, {}, s), 1});
    chain.push_back({blocks_.reduce_end(unit, s), 1});
  }
  if (s.layers > 0) {
    using Pair = std::pair<const CostedBlock*, const CostedBlock*>;  // a block, the one before it
    add_runs(chain, s.layers, [&](int i) {
      const auto block = [&](int back) { return s.layer_at(s.layers - 1 - back); };
      const Pair pair{block(i), i > 0 ? block(i - 1) : nullptr};
      return std::pair(
          pair, [&, pair] { return blocks_.reduce(unit_of(pair.first), unit_of(pair.second), s); });
    });
    chain.push_back({blocks_.reduce_end(unit_of(s.layer_at(0)), s), 1});
  }
  return chain;
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
      const ChainId later = add(backward_chain(s, resharded, all, ReduceMode::kScatterAccumulate));
      set(ActionKind::kBackward, later);
      set(ActionKind::kBackwardLast, later);
    }
  }
  set(ActionKind::kGradNorm, add({{blocks_.norm(s), 1}}));
  set(ActionKind::kOptimizer, add({{blocks_.optimizer(s), 1}}));
  return out;
}

Resident Fsdp2::resident(const StageParts& s) const {
  Resident out{};
  const std::int64_t parameters = shard_of(whole_unit(s), s);
  out[static_cast<std::size_t>(MemoryComponent::kParameters)] =
      size_of(s.states.master) * parameters;
  out[static_cast<std::size_t>(MemoryComponent::kOptimizer)] =
      static_cast<std::int64_t>(moment_bytes(s.states) * static_cast<double>(parameters));
  return out;
}

}  // namespace

std::unique_ptr<ShardingStrategy> make_fsdp2(const SoftwareStack& software, const Costs& costs,
                                             ProgramPool& pool) {
  return std::make_unique<Fsdp2>(software, costs, pool);
}

}  // namespace forerun

#include "model/lowering.hpp"

#include <algorithm>

#include "base/contract.hpp"
#include "workloads/stage_split.hpp"

namespace forerun {
namespace {

ShapeKey shape_key(BlockKind kind, const Plan& plan) {
  ShapeKey key;
  key.kind = kind;
  key.batch = plan.micro_batch;
  key.sequence = plan.sequence_length;
  key.tp = plan.tp;
  key.cp = plan.cp;
  key.sequence_parallel = plan.sequence_parallel && plan.tp > 1;
  if (kind == BlockKind::kHead) {
    key.parallel_loss = plan.loss == LossKind::kParallel && plan.tp > 1;
  }
  if (kind == BlockKind::kDecoder) {  // torch.compile and checkpointing wrap decoder blocks
    key.fp8 = plan.precision == Precision::kFp8Tensorwise;
    key.compiled = plan.compile;
    key.async_tp = plan.async_tp && plan.tp > 1;
    key.recompute = plan.recompute;
  }
  return key;
}

BlockRequest request_of(const ShapeKey& key, const Scenario& scenario) {
  const SoftwareStack& software = scenario.software;
  BlockRequest r;
  r.kind = key.kind;
  r.options.batch = key.batch;
  r.options.sequence = key.sequence;
  r.options.context_parallel = key.cp;
  r.options.fp8 = key.fp8;
  r.options.fp8_weights = software.fp8_all_gather;
  r.options.parallel_loss = key.parallel_loss;
  r.options.modules = software.modules;
  r.options.modules.quantise_once = key.compiled;  // the compiler drops repeated casts
  r.degrees = {key.tp, key.cp, key.sequence_parallel};
  r.autodiff.regather_in_backward = software.regather_in_backward;
  r.recompute = key.recompute;
  r.save_list.matmul_every = software.selective_matmul_every;
  r.window = scenario.model.window;
  r.compiled = key.compiled;
  r.async_tp = key.async_tp;
  return r;
}

Block events_only(std::string_view name, std::initializer_list<MemoryDelta> deltas) {
  Block block;
  block.name = name;
  for (const MemoryDelta& d : deltas) {
    if (d.bytes != 0) block.events.push_back({MemoryPool::kCompute, d.component, d.bytes, d.bytes});
  }
  return block;
}

}  // namespace

Lowering::Lowering(const Scenario& scenario, const Profile& profile)
    : scenario_(scenario),
      profile_(profile),
      costs_(scenario, profile),
      sharding_(make_sharding(scenario.software, costs_, pool_)) {}

std::size_t Lowering::shape(const ShapeKey& key) {
  const auto known = std::find(shape_keys_.rbegin(), shape_keys_.rend(), key);
  if (known != shape_keys_.rend()) {
    return static_cast<std::size_t>(shape_keys_.rend() - known) - 1;
  }
  shape_keys_.push_back(key);
  shapes_.push_back(std::make_unique<BlockKernels>(
      block_kernels(scenario_.model, request_of(key, scenario_))));
  return shapes_.size() - 1;
}

const BlockKernels& Lowering::kernels(BlockKind kind, const Plan& plan) {
  return *shapes_[shape(shape_key(kind, plan))];
}

const CostedBlock* Lowering::costed(BlockKind kind, const Plan& plan) {
  const Mesh mesh = plan.mesh();
  CostKey key;
  key.shape = shape(shape_key(kind, plan));
  key.tp = span_of(mesh, {Axis::kTp}, scenario_.cluster);
  key.cp = span_of(mesh, {Axis::kCp}, scenario_.cluster);
  key.attention = plan.attention;
  key.fp8_step = plan.precision == Precision::kFp8Tensorwise;
  const auto known = std::find(cost_keys_.rbegin(), cost_keys_.rend(), key);
  if (known != cost_keys_.rend()) {
    return costed_[static_cast<std::size_t>(cost_keys_.rend() - known) - 1].get();
  }
  const CostingContext context{&costs_,      &scenario_.software.host, plan.attention,
                               key.fp8_step, key.tp,                   key.cp};
  cost_keys_.push_back(key);
  costed_.push_back(
      std::make_unique<CostedBlock>(cost_block(kind, *shapes_[key.shape], context)));
  return costed_.back().get();
}

/// Messages between stages in the chains of a stage. The blocks' own accounts free a stage's input in
/// its backward pass and keep its output; here what is received, sent and kept is added.
void Lowering::add_messages(const Plan& plan, int stage, StageEntry& entry) {
  const bool receives = stage > 0, sends = stage + 1 < plan.stages();
  const std::int64_t in = receives ? message_bytes(plan) : 0, out = sends ? message_bytes(plan) : 0;
  const bool keep = scenario_.software.persistent_messages;
  const std::int64_t logits =
      keep && entry.parts.head != nullptr ? entry.parts.head->kernels->logit_bytes : 0;
  constexpr auto kActs = MemoryComponent::kActivations, kTemp = MemoryComponent::kTemporaries,
                 kPipe = MemoryComponent::kPipeline;
  const BlockId forward_begin = pool_.add(events_only(
      "pipeline.receive", {{kActs, in}, {kPipe, keep ? -in : 0}}));
  const BlockId forward_end = pool_.add(events_only(
      "pipeline.sent",
      {{kActs, -out}, {kPipe, keep ? out : 0}, {kPipe, logits}}));
  const BlockId backward_begin = pool_.add(events_only(
      "pipeline.receive_gradient", {{kPipe, keep ? -out : 0}, {kTemp, out}}));
  const BlockId backward_end = pool_.add(events_only(
      "pipeline.sent_gradient",
      {{kTemp, -in}, {kPipe, keep ? 2 * in : 0}, {kPipe, keep ? out : 0}}));
  for (std::size_t kind = 0; kind < kActionKinds; ++kind) {
    ChainId& id = entry.chains.chain[kind];
    const auto action = static_cast<ActionKind>(kind);
    if (!id.valid() || (!is_forward(action) && !is_backward(action))) continue;
    Chain chain{{is_forward(action) ? forward_begin : backward_begin, 1}};
    chain.insert(chain.end(), pool_[id].begin(), pool_[id].end());
    chain.push_back({is_forward(action) ? forward_end : backward_end, 1});
    id = pool_.add(std::move(chain));
  }
}

const Lowering::StageEntry& Lowering::stage(const Plan& plan, int index, int layers) {
  const bool first = index == 0, last = index + 1 == plan.stages();
  StageParts parts;
  parts.embedding = first ? costed(BlockKind::kEmbedding, plan) : nullptr;
  parts.layer = costed(BlockKind::kDecoder, plan);
  parts.layers = layers;
  parts.head = last ? costed(BlockKind::kHead, plan) : nullptr;
  parts.shard = span_of(plan.mesh(), {Axis::kDpShard, Axis::kCp}, scenario_.cluster);
  parts.pipeline = plan.pp > 1;
  parts.accumulates = plan.microbatches() > 1;
  parts.reshard = plan.reshard;
  parts.fp8 = plan.precision == Precision::kFp8Tensorwise;
  for (const StageEntry& entry : stages_) {
    if (entry.parts == parts && entry.receives == !first && entry.sends == !last) return entry;
  }
  StageEntry& entry = stages_.emplace_front();
  entry.parts = parts;
  entry.receives = !first;
  entry.sends = !last;
  entry.chains = sharding_->chains(parts);
  entry.resident = sharding_->resident(parts);
  entry.gradients = sharding_->gradients_between_steps(parts);
  if (parts.pipeline) add_messages(plan, index, entry);
  return entry;
}

std::int64_t Lowering::message_bytes(const Plan& plan) {
  return kernels(BlockKind::kDecoder, plan).output_bytes;
}

const FoldedSchedule& Lowering::schedule(const Plan& plan) {
  const ScheduleRequest request{plan.pp, plan.virtual_stages, plan.microbatches(), 0};
  const std::pair key{plan.schedule, request};
  for (const auto& [known, folded] : schedules_) {
    if (known == key) return folded;
  }
  const ScheduleGenerator* generator = find_schedule(plan.schedule);
  FR_ASSERT(generator != nullptr);
  schedules_.emplace_front(key, make_schedule(*generator, request));
  return schedules_.front().second;
}

void Lowering::split_layers(const Plan& plan) {
  if (plan.stages() == 1) {
    layers_.assign(1, static_cast<int>(scenario_.model.layers));
  } else {
    layers_ = layers_per_stage(scenario_, plan);
  }
}

void Lowering::lower(const Plan& plan, Program& out) {
  const FoldedSchedule& folded = schedule(plan);
  const Mesh mesh = plan.mesh();
  out.pool = &pool_;
  out.schedule = &folded.schedule;
  out.repeats = folded.repeats;
  out.ranks = plan.pp;
  out.virtual_stages = plan.virtual_stages;
  out.rates = costs_.rates();
  out.blocking_sends = scenario_.software.blocking_sends;
  out.stages.clear();
  out.resident.assign(static_cast<std::size_t>(plan.pp), Resident{});
  between_steps_.assign(static_cast<std::size_t>(plan.pp), 0);
  split_layers(plan);
  const bool keep = scenario_.software.persistent_messages && plan.pp > 1;
  const std::int64_t messages = keep ? plan.microbatches() * message_bytes(plan) : 0;
  for (int s = 0; s < plan.stages(); ++s) {
    const StageEntry& entry = stage(plan, s, layers_[static_cast<std::size_t>(s)]);
    out.stages.push_back(entry.chains);
    const auto rank = static_cast<std::size_t>(s % plan.pp);
    Resident& resident = out.resident[rank];
    for (std::size_t c = 0; c < kMemoryComponents; ++c) resident[c] += entry.resident[c];
    resident[static_cast<std::size_t>(MemoryComponent::kPipeline)] +=
        messages * ((entry.receives ? 1 : 0) + (entry.sends ? 1 : 0));
    between_steps_[rank] += entry.gradients;
    if (keep) {  // outputs and input gradients of the step that has ended, and its merged logits
      between_steps_[rank] += messages * ((entry.receives ? 1 : 0) + (entry.sends ? 1 : 0));
      const std::int64_t logits =
          entry.parts.head != nullptr ? entry.parts.head->kernels->logit_bytes : 0;
      between_steps_[rank] += plan.microbatches() * logits;
      resident[static_cast<std::size_t>(MemoryComponent::kPipeline)] +=
          plan.microbatches() * logits;
    }
  }
  for (std::size_t rank = 0; rank < out.resident.size(); ++rank) {
    out.resident[rank][static_cast<std::size_t>(MemoryComponent::kOther)] +=
        static_cast<std::int64_t>(scenario_.software.memory.workspace_bytes);
    for (const std::int64_t bytes : out.resident[rank]) between_steps_[rank] += bytes;
  }
  out.message_seconds =
      plan.pp == 1 ? 0
                   : costs_.send(static_cast<double>(message_bytes(plan)),
                                 neighbour_tier(mesh, Axis::kPp, scenario_.cluster));
  const Span world = span_of(
      mesh, {Axis::kPp, Axis::kDpReplicate, Axis::kDpShard, Axis::kCp, Axis::kTp},
      scenario_.cluster);
  out.sync_seconds = scenario_.software.clip_grad_norm
                         ? costs_.collective(CollectiveKind::kAllReduce, 4, world)
                         : 0;
}

}  // namespace forerun

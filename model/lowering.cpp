#include "model/lowering.hpp"

#include <algorithm>

#include "base/contract.hpp"
#include "model/engine/memory.hpp"
#include "workloads/expert_mesh.hpp"
#include "workloads/stage_split.hpp"

namespace forerun {
namespace {

ShapeKey shape_key(BlockKind kind, const Plan& plan, const ModelSpec& model) {
  ShapeKey key;
  key.kind = kind;
  key.batch = plan.micro_batch;
  key.sequence = plan.sequence_length;
  key.tp = plan.tp;
  key.cp = plan.cp;
  key.sequence_parallel = plan.sequence_parallel && plan.tp > 1;
  if (kind == BlockKind::kHead) {
    // In a pipeline both ends hold the table.
    key.tied = plan.pp == 1 && model.tied_embeddings;
    key.parallel_loss = plan.loss == LossKind::kParallel && plan.tp > 1;
  }
  key.accumulates = plan.zero_stage < 2;
  if (kind == BlockKind::kMoeDecoder) {
    key.ep = plan.ep;
    key.experts_cut = experts_cut(plan);
    key.imbalance = plan.moe_imbalance;
  }
  if (is_decoder(kind)) {  // torch.compile and checkpointing wrap decoder blocks
    key.fp8 = is_quantised(plan.precision);
    key.compiled = plan.compile;
    key.async_tp = plan.async_tp && plan.tp > 1;
    key.recompute = plan.recompute;
    key.unfused = plan.attention == AttentionKernel::kUnfused;
    if (plan.cp > 1) key.cp_kind = plan.cp_kind;
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
  r.options.fp8_weights = software.fp8_all_gather || software.modules.fused_quantise;
  r.options.parallel_loss = key.parallel_loss;
  r.options.modules = software.modules;
  // The compiler drops repeated casts.
  r.options.modules.quantise_once = key.compiled || software.modules.fused_quantise;
  r.autodiff.fused_quantise = software.modules.fused_quantise;
  const bool by_heads = key.cp_kind == CpKind::kUlysses;
  r.options.whole_sequences = by_heads;
  r.options.unfused_attention = key.unfused;
  r.degrees = {key.tp, key.cp, key.sequence_parallel, key.ep, by_heads};
  r.ring = key.cp_kind == CpKind::kRing;
  r.options.expert_parallel = key.ep;
  r.options.experts_cut = key.experts_cut;
  r.options.imbalance = key.imbalance;
  r.autodiff.regather_in_backward = software.regather_in_backward;
  r.recompute = key.recompute;
  r.shares_table = key.tied;
  r.save_list.matmul_every = software.selective_matmul_every;
  r.window = scenario.model.window;
  r.compiled = key.compiled;
  r.async_tp = key.async_tp;
  if (key.accumulates) r.accumulation = software.replicas.accumulation;
  return r;
}

BlockDraft events_only(std::string_view name, std::initializer_list<MemoryDelta> deltas) {
  BlockDraft block;
  block.name = name;
  for (const MemoryDelta& d : deltas) {
    if (d.bytes != 0) block.events.push_back({MemoryPool::kCompute, d.component, d.bytes, d.bytes});
  }
  return block;
}

std::size_t span_hash(const Span& span) {
  return hash_of(span.ranks, span.nodes, span.ranks_per_node, span.racks, span.tier);
}

std::size_t states_hash(const OptimizerStates& s) {
  return hash_of(s.kind, s.parameter, s.master, s.gradient, s.moment);
}

template <class T>
std::uintptr_t address(const T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace

std::size_t MeshKey::hash() const {
  std::size_t h = hash_of(ep, experts_cut, experts_replicated);
  for (const Axis axis : mesh.order())
    h = hash_of(h, axis, mesh.degree(axis));
  return h;
}

std::size_t LayoutKey::hash() const {
  return hash_of(address(embedding), address(layer), address(head), span_hash(shard),
                 replicate.ranks, data.ranks, zero_stage, states_hash(states), address(dense_layer),
                 expert_shard.ranks, pp, virtual_stages, accumulates, fp8, reshard, layers.count);
}

std::size_t Lowering::StageKey::hash() const {
  return hash_of(address(parts.embedding), address(parts.layer), address(parts.head), parts.layers,
                 span_hash(parts.shard), parts.replicate.ranks, parts.data.ranks, parts.zero_stage,
                 states_hash(parts.states), parts.pipeline, parts.accumulates, parts.reshard,
                 parts.fp8, receives, sends, address(parts.dense_layer), parts.pattern.dense_first,
                 parts.pattern.phase, parts.expert_shard.ranks);
}

Lowering::Lowering(const Scenario& scenario, const Profile& profile)
    : scenario_(scenario),
      costs_(scenario, profile),
      sharded_(make_sharding(scenario.software, costs_, pool_)),
      replicas_(make_replicas(scenario.software, costs_, pool_)) {}

// ---- blocks
// --------------------------------------------------------------------------------------

const BlockKernels& Lowering::shape(const ShapeKey& key) {
  return shapes_[static_cast<std::size_t>(key.kind)].find_or_make(
      key, [&] { return block_kernels(scenario_.model, request_of(key, scenario_)); });
}

std::size_t Lowering::shapes() const {
  std::size_t n = 0;
  for (const auto& memo : shapes_)
    n += memo.size();
  return n;
}

const BlockKernels& Lowering::kernels(BlockKind kind, const Plan& plan) {
  return shape(shape_key(kind, plan, scenario_.model));
}

const CostedBlock* Lowering::costed(BlockKind kind, const Plan& plan, const MeshSpans& spans) {
  CostKey key;
  key.shape = shape_key(kind, plan, scenario_.model);
  key.tp = spans.tp;
  key.cp = spans.cp;
  if (kind == BlockKind::kMoeDecoder) key.expert = spans.expert;
  key.attention = plan.attention;
  key.precision = plan.precision;
  return &costed_[static_cast<std::size_t>(kind)].find_or_make(key, [&] {
    const CostingContext context{
        &costs_,     &scenario_.software.host, plan.attention, key.precision, spans.tp, spans.cp,
        spans.expert};
    return cost_block(kind, shape(key.shape), context);
  });
}

const MeshSpans& Lowering::spans(const Plan& plan) {
  MeshKey key{plan.mesh()};
  if (scenario_.model.moe()) {
    key.ep = plan.ep;
    key.experts_cut = experts_cut(plan);
    key.experts_replicated = plan.zero_stage < 3;
  }
  return spans_.find_or_make(key, [&] {
    const ClusterSpec& cluster = scenario_.cluster;
    MeshSpans out;
    out.tp = span_of(key.mesh, {Axis::kTp}, cluster);
    out.cp = span_of(key.mesh, {Axis::kCp}, cluster);
    out.shard = span_of(key.mesh, {Axis::kDpShard, Axis::kCp}, cluster);
    out.replicate = span_of(key.mesh, {Axis::kDpReplicate}, cluster);
    out.data = span_of(key.mesh, {Axis::kDpReplicate, Axis::kDpShard, Axis::kCp}, cluster);
    if (scenario_.model.moe()) {
      const ExpertGroups groups = expert_groups(plan);
      out.expert = span_of(groups.experts, cluster);
      out.expert_shard = plan.ep > 1            ? span_of(groups.copies, cluster)
                         : plan.zero_stage >= 2 ? out.shard
                                                : out.data;
    }
    if (plan.pp > 1) out.pipeline = neighbour_tier(key.mesh, Axis::kPp, cluster);
    const Span world = span_of(
        key.mesh, {Axis::kPp, Axis::kDpReplicate, Axis::kDpShard, Axis::kCp, Axis::kTp}, cluster);
    out.sync_seconds = scenario_.software.clip_grad_norm
                           ? costs_.collective(CollectiveKind::kAllReduce, 4, world)
                           : 0;
    return out;
  });
}

// ---- stages
// --------------------------------------------------------------------------------------

/// Messages between stages in the chains of a stage. The blocks' own accounts free a stage's input
/// in its backward pass and keep its output; here what is received, sent and kept is added.
void Lowering::add_messages(const StageKey& key, StageChains& chains) {
  const std::int64_t bytes = key.parts.layer->kernels->output_bytes;
  const std::int64_t in = key.receives ? bytes : 0, out = key.sends ? bytes : 0;
  const bool keep = scenario_.software.persistent_messages;
  const std::int64_t logits =
      keep && key.parts.head != nullptr ? key.parts.head->kernels->logit_bytes : 0;
  constexpr auto kActs = MemoryComponent::kActivations, kTemp = MemoryComponent::kTemporaries,
                 kPipe = MemoryComponent::kPipeline;
  const BlockId forward_begin =
      pool_.add(events_only("pipeline.receive", {{kActs, in}, {kPipe, keep ? -in : 0}}));
  const BlockId forward_end = pool_.add(
      events_only("pipeline.sent", {{kActs, -out}, {kPipe, keep ? out : 0}, {kPipe, logits}}));
  const BlockId backward_begin =
      pool_.add(events_only("pipeline.receive_gradient", {{kPipe, keep ? -out : 0}, {kTemp, out}}));
  const BlockId backward_end =
      pool_.add(events_only("pipeline.sent_gradient",
                            {{kTemp, -in}, {kPipe, keep ? 2 * in : 0}, {kPipe, keep ? out : 0}}));
  for (std::size_t kind = 0; kind < kActionKinds; ++kind) {
    ChainId& id = chains.chain[kind];
    const auto action = static_cast<ActionKind>(kind);
    if (!id.valid() || (!is_forward(action) && !is_backward(action))) continue;
    ChainDraft chain{{is_forward(action) ? forward_begin : backward_begin, 1}};
    const Chain inner = pool_[id];
    chain.insert(chain.end(), inner.begin(), inner.end());
    chain.push_back({is_forward(action) ? forward_end : backward_end, 1});
    id = pool_.add(Chain(chain));
  }
}

const Lowering::Stage& Lowering::stage(const StageKey& key) {
  return stages_.find_or_make(key, [&] {
    ShardingStrategy& sharding = key.parts.zero_stage >= 2 ? *sharded_ : *replicas_;
    Stage out{sharding.chains(key.parts), sharding.resident(key.parts),
              sharding.gradients_between_steps(key.parts)};
    if (key.parts.pipeline) add_messages(key, out.chains);
    return out;
  });
}

/// The kinds of layers of a stage, in the form that most stages share: where it has layers of one
/// kind alone it does not matter which of the model's they are.
void Lowering::place_layers(StageParts& parts, const LayoutKey& key, int first_layer) const {
  if (key.dense_layer == nullptr) return;
  const ModelSpec& model = scenario_.model;
  const auto every = static_cast<int>(model.moe_every);
  const auto leading = static_cast<int>(model.first_k_dense);
  parts.pattern = {std::clamp(leading - first_layer, 0, parts.layers), every, first_layer % every};
  parts.dense_layer = key.dense_layer;
  int experts = 0;
  for (int i = 0; i < parts.layers; ++i)
    experts += parts.pattern.experts(i) ? 1 : 0;
  if (experts > 0 && experts < parts.layers) return;
  if (experts == 0) parts.layer = key.dense_layer;
  parts.dense_layer = nullptr;
  parts.pattern = {};
}

PipelineLayout Lowering::make_layout(const Plan& plan, const LayoutKey& key) {
  const int stages = plan.stages();
  const std::vector<int> layers = stages == 1
                                      ? std::vector<int>{static_cast<int>(scenario_.model.layers)}
                                      : layers_per_stage(scenario_, plan);
  PipelineLayout out;
  out.message_bytes = key.layer->kernels->output_bytes;
  out.ranks.resize(static_cast<std::size_t>(plan.pp));
  int first_layer = 0;
  for (int s = 0; s < stages; ++s) {
    const bool first = s == 0, last = s + 1 == stages;
    StageKey part;
    part.parts = {first ? key.embedding : nullptr,
                  key.layer,
                  layers[static_cast<std::size_t>(s)],
                  last ? key.head : nullptr,
                  key.shard,
                  key.replicate,
                  key.data,
                  key.zero_stage,
                  key.states,
                  plan.pp > 1,
                  key.accumulates,
                  key.reshard,
                  key.fp8};
    part.parts.expert_shard = key.expert_shard;
    place_layers(part.parts, key, first_layer);
    first_layer += part.parts.layers;
    part.receives = !first;
    part.sends = !last;
    const Stage& known = stage(part);
    out.stages.push_back(known.chains);
    RankHolds& rank = out.ranks[static_cast<std::size_t>(s % plan.pp)];
    for (std::size_t c = 0; c < kMemoryComponents; ++c)
      rank.states[c] += known.resident[c];
    rank.gradients += known.gradients;
    rank.message_ends += (first ? 0 : 1) + (last ? 0 : 1);
    if (last) rank.logits = key.head->kernels->logit_bytes;
  }
  for (RankHolds& rank : out.ranks) {
    rank.states[static_cast<std::size_t>(MemoryComponent::kOther)] +=
        static_cast<std::int64_t>(scenario_.software.memory.workspace_bytes);
  }
  return out;
}

const PipelineLayout& Lowering::layout(const Plan& plan, const MeshSpans& spans) {
  LayoutKey key;
  key.embedding = costed(BlockKind::kEmbedding, plan, spans);
  const bool experts = scenario_.model.moe_layers() > 0;
  key.layer = costed(experts ? BlockKind::kMoeDecoder : BlockKind::kDecoder, plan, spans);
  if (experts && scenario_.model.dense_layers() > 0) {
    key.dense_layer = costed(BlockKind::kDecoder, plan, spans);
  }
  key.head = costed(BlockKind::kHead, plan, spans);
  key.shard = spans.shard;
  key.replicate = spans.replicate;
  key.data = spans.data;
  key.zero_stage = plan.zero_stage;
  key.states = states_of(plan);
  key.expert_shard = spans.expert_shard;
  key.pp = plan.pp;
  key.virtual_stages = plan.virtual_stages;
  key.fp8 = is_quantised(plan.precision);
  if (plan.pp == 1) {  // with a pipeline parameters stay gathered and gradients unsharded
    key.accumulates = plan.microbatches() > 1;
    key.reshard = plan.zero_stage == 2 ? Reshard::kNever : plan.reshard;
  }
  key.layers = plan.stage_layers;
  return layouts_.find_or_make(key, [&] { return make_layout(plan, key); });
}

// ---- programs
// ------------------------------------------------------------------------------------

const FoldedSchedule& Lowering::schedule(const Plan& plan) {
  const ScheduleKey key{plan.schedule, {plan.pp, plan.virtual_stages, plan.microbatches(), 0}};
  return schedules_.find_or_make(key, [&] {
    const ScheduleGenerator* generator = find_schedule(plan.schedule);
    FR_ASSERT(generator != nullptr);
    return make_schedule(*generator, key.request);
  });
}

void Lowering::lower(const Plan& plan, Program& out) {
  const FoldedSchedule& folded = schedule(plan);
  const MeshSpans& groups = spans(plan);
  const PipelineLayout& layout = this->layout(plan, groups);
  out.pool = &pool_;
  out.schedule = &folded.schedule;
  out.repeats = folded.repeats;
  out.ranks = plan.pp;
  out.blocking_sends = scenario_.software.blocking_sends;
  out.stages = layout.stages;
  out.message_seconds =
      plan.pp == 1 ? 0 : costs_.send(static_cast<double>(layout.message_bytes), groups.pipeline);
  out.sync_seconds = groups.sync_seconds;
  // A stack may keep outputs, input gradients and logits of a whole step until the next one ends.
  const bool keep = scenario_.software.persistent_messages && plan.pp > 1;
  const std::int64_t kept = keep ? plan.microbatches() : 0;
  out.resident.resize(layout.ranks.size());
  between_steps_.resize(layout.ranks.size());
  for (std::size_t r = 0; r < layout.ranks.size(); ++r) {
    const RankHolds& rank = layout.ranks[r];
    const std::int64_t messages = kept * (rank.message_ends * layout.message_bytes + rank.logits);
    out.resident[r] = rank.states;
    out.resident[r][static_cast<std::size_t>(MemoryComponent::kPipeline)] += messages;
    // As a step ends its own messages lie beside those of the step before.
    between_steps_[r] = rank.gradients + total(out.resident[r]) + messages;
  }
}

}  // namespace forerun

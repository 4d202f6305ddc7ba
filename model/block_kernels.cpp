#include "model/block_kernels.hpp"

#include <algorithm>

#include "base/contract.hpp"
#include "model/async_tp.hpp"
#include "model/fusion.hpp"
#include "model/pool_replay.hpp"

namespace forerun {
namespace {

constexpr std::int64_t kAllocatorRound = 512;  // c10::cuda::CUDACachingAllocator kMinBlockSize

/// Passes over its input that a top-k takes: 66 us for 4,096 rows of 256 fp32 scores on an H800
/// (deepseek-ai/profile-data, train.json). A radix sort of 8 bits a pass over 64-bit keys takes 8.
constexpr std::int64_t kTopKPasses = 20, kSortPasses = 8;

std::int64_t rounded(std::int64_t bytes) {
  return (bytes + kAllocatorRound - 1) / kAllocatorRound * kAllocatorRound;
}

/// Makes the kernels of one pass and follows the life of its tensors.
class PassLowering {
 public:
  /// `saved`: tensors that live from the forward to the backward pass.
  PassLowering(const DifferentiatedBlock& block, const BlockRequest& request,
               const std::vector<FusedKernel>& fused, const std::vector<bool>& saved)
      : graph_(block.graph),
        request_(request),
        fused_(fused),
        saved_(saved),
        tensors_(saved.size()),
        is_parameter_gradient_(saved.size(), false),
        is_boundary_(saved.size(), false) {
    is_boundary_[at(block.input)] = is_boundary_[at(block.output)] = true;
    input_gradient_ = block.input_gradient;
    for (const ParameterGradient& p : block.parameter_gradients) {
      is_parameter_gradient_[at(p.gradient)] = true;
    }
  }

  /// `held`: tensors that live when the pass begins and are this pass's to free; `kept`: tensors
  /// that stay when it ends. `lives` gets the tensors that the pass makes or frees.
  std::vector<Kernel> run(const std::vector<bool>& held, const std::vector<bool>& kept,
                          std::vector<TensorLife>& lives) {
    for (const FusedKernel& fused : fused_) {
      lower(fused);
      if (request_.accumulation) accumulate_gradients(fused);
    }
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      settle(t, held[t], kept[t], lives);
    return std::move(kernels_);
  }

 private:
  struct Life {
    int made = -1;       // kernel that allocates it
    int last_use = -1;   // last kernel that reads or writes it
    bool alias = false;  // a view: no memory of its own
  };

  static std::size_t at(TensorId id) { return static_cast<std::size_t>(id.index()); }
  [[nodiscard]] const Operator& first_op(const FusedKernel& f) const { return graph_[f.ops[0].op]; }

  void lower(const FusedKernel& fused) {
    const Operator& op = first_op(fused);
    if (op.fn == Fn::kSplit) return views(op);
    if (op.fn == Fn::kRedistribute) {
      if (graph_.redistribution(fused.ops[0].op).collective == CollectiveKind::kNone) {
        return alias(op);
      }
      collective(fused, op);
    } else if (op.fn == Fn::kLinear || op.fn == Fn::kLinearDgrad || op.fn == Fn::kLinearWgrad ||
               op.fn == Fn::kGroupedLinear || op.fn == Fn::kGroupedDgrad ||
               op.fn == Fn::kGroupedWgrad) {
      gemm(fused, op);
    } else if (op.fn == Fn::kAttention || op.fn == Fn::kAttentionBackward) {
      attention(fused, op);
    } else {
      memory_bound(fused, op);
    }
  }

  void alias(const Operator& op) {
    tensors_[at(op.outputs[0])].alias = true;
    sources_.emplace_back(op.outputs[0], op.inputs[0]);
  }

  /// Parts of a tensor are taken to be written by what wrote the tensor, each with memory of its
  /// own.
  void views(const Operator& op) {
    Life& whole = tensors_[at(op.inputs[0])];
    whole.alias = true;
    for (const TensorId part : op.outputs) {
      tensors_[at(part)].made = whole.made;
      tensors_[at(part)].last_use = whole.made;
    }
  }

  Kernel& add(const FusedKernel& fused, Kernel kernel) {
    kernel.recompute = fused.ops[0].recompute;
    if (kernel.name.empty()) kernel.name = first_op(fused).name;
    const auto self = static_cast<int>(kernels_.size());
    for (const TensorId t : fused.reads)
      touch(t, self, kernel);
    for (const Execution& e : fused.ops) {
      for (const TensorId t : graph_[e.op].holds)
        hold(t, self);
    }
    for (const TensorId t : fused.writes) {
      tensors_[at(t)].made = self;
      tensors_[at(t)].last_use = self;
    }
    kernels_.push_back(kernel);
    return kernels_.back();
  }

  /// Notes a read: the tensor lives until then, and another stream's result is waited for.
  void touch(TensorId t, int self, Kernel& kernel) {
    for (const auto& [copy, source] : sources_) {
      if (copy == t) return touch(source, self, kernel);
    }
    Life& life = tensors_[at(t)];
    life.last_use = self;
    if (life.made < 0) return;
    const Kernel& producer = kernels_[static_cast<std::size_t>(life.made)];
    const bool other_stream = producer.is_collective() != kernel.is_collective() ||
                              (kernel.is_collective() && producer.comm.dim != kernel.comm.dim);
    const auto made = static_cast<std::int16_t>(life.made);
    const bool known =
        std::find(kernel.after.begin(), kernel.after.end(), made) != kernel.after.end();
    if (other_stream && !known && kernel.after.size() < kernel.after.capacity()) {
      kernel.after.push_back(made);
    }
  }

  /// Parameter gradients go into the gradient buffer, an fp32 one, as soon as they are made.
  void accumulate_gradients(const FusedKernel& fused) {
    for (const Execution& e : fused.ops) {
      for (const TensorId t : graph_[e.op].outputs) {
        if (!is_parameter_gradient_[at(t)]) continue;
        if (request_.accumulation == GradientAccumulation::kProduct) {
          tensors_[at(t)].alias = true;  // written where it stays
          continue;
        }
        constexpr int kRead = 2 + 4, kWrite = 4;
        Kernel kernel;
        kernel.name = "gradient.accumulate";
        kernel.family = KernelFamily::kEager;
        kernel.bytes = (kRead + kWrite) * graph_.local_bytes(t) / size_of(graph_[t].dtype);
        touch(t, static_cast<int>(kernels_.size()), kernel);
        kernels_.push_back(kernel);
      }
    }
  }

  void hold(TensorId t, int self) {
    Life& life = tensors_[at(t)];
    life.last_use = std::max(life.last_use, self);
  }

  // ---- kinds of kernels ----------------------------------------------------------------------

  void collective(const FusedKernel& fused, const Operator& op) {
    const Redistribution& r = graph_.redistribution(fused.ops[0].op);
    Kernel kernel;
    kernel.family = KernelFamily::kCollective;
    kernel.category = r.dim == MeshDim::kTensor    ? Category::kExposedTp
                      : r.dim == MeshDim::kContext ? Category::kExposedCp
                                                   : Category::kExposedEp;
    kernel.comm.collective = r.collective;
    kernel.comm.dim = r.dim;
    const std::int64_t whole = graph_.group_bytes(op.inputs[0], r.dim);
    kernel.comm.bytes = collective_bytes(r.collective, whole, graph_.degrees().of(r.dim));
    add(fused, kernel);
  }

  void gemm(const FusedKernel& fused, const Operator& op) {
    Kernel kernel;
    kernel.family = KernelFamily::kGemm;
    kernel.category = fused.ops[0].recompute ? Category::kRecompute : Category::kGemm;
    GemmShape& g = kernel.gemm;
    g.dtype = graph_[op.inputs[0]].dtype;
    const Dims a = graph_.local_dims(op.inputs[0]), b = graph_.local_dims(op.inputs[1]);
    const bool wgrad = op.fn == Fn::kLinearWgrad || op.fn == Fn::kGroupedWgrad;
    g.groups = wgrad ? graph_[op.outputs[0]].dims[2] : b[2];  // 1 but for experts
    const std::int64_t rows = (a[0] * a[1] + g.groups - 1) / g.groups;
    if (op.fn == Fn::kLinear || op.fn == Fn::kGroupedLinear) {
      g.m = rows, g.n = b[0], g.k = b[1], g.layout = GemmLayout::kForward;
    } else if (!wgrad) {
      g.m = rows, g.n = b[1], g.k = b[0], g.layout = GemmLayout::kDgrad;
    } else {
      g.m = a[2], g.n = b[2], g.k = rows, g.layout = GemmLayout::kWgrad;
    }
    kernel.bytes = g.groups * (size_of(g.dtype) * (g.m * g.k + g.k * g.n) + 2 * g.m * g.n);
    add(fused, kernel);
  }

  void attention(const FusedKernel& fused, const Operator& op) {
    const bool backward = op.fn == Fn::kAttentionBackward;
    const std::size_t shift = backward ? 1 : 0;  // inputs of the backward begin with dout
    const Dims q = graph_.local_dims(op.inputs[shift]),
               kv = graph_.local_dims(op.inputs[shift + 1]);
    const TensorId lse = backward ? op.inputs[5] : op.outputs[1];
    const int cp = graph_.degrees().whole_sequences ? 1 : graph_.degrees().cp;
    Kernel kernel;
    kernel.family = backward ? KernelFamily::kAttentionBackward : KernelFamily::kAttentionForward;
    kernel.category = fused.ops[0].recompute ? Category::kRecompute : Category::kAttention;
    kernel.repeat = cp;
    AttentionShape& s = kernel.attention;
    s.batch = q[0];
    s.heads = graph_.local_dims(lse)[2];
    s.head_dim = q[2] / s.heads;
    s.kv_heads = kv[2] / s.head_dim;
    s.q_length = q[1];
    s.kv_length = kv[1] / cp;
    s.pairs = computed_pairs(s) / cp;
    const std::int64_t q_bytes = 2 * q[0] * q[1] * q[2], kv_bytes = 2 * kv[0] * kv[1] * kv[2];
    kernel.bytes = backward ? 4 * q_bytes + 4 * kv_bytes : 2 * q_bytes + 2 * kv_bytes;
    if (request_.options.unfused_attention) s.scores = s.batch * s.heads * s.q_length * s.kv_length;
    if (backward) {  // FlashAttention-2 accumulates dq in fp32 and keeps a row sum beside it
      const std::int64_t workspace = rounded(2 * q_bytes) + rounded(4 * q[0] * q[1] * s.heads);
      kernel.memory.allocate(MemoryComponent::kTemporaries, workspace);
      kernel.memory.free(MemoryComponent::kTemporaries, workspace);
    }
    add(fused, kernel);
    if (cp > 1) merge_chunks(fused, q_bytes / 2, cp, backward);
  }

  /// Query-key pairs under the causal mask (and window), zigzag-balanced over context parallelism.
  [[nodiscard]] double computed_pairs(const AttentionShape& s) const {
    const double whole = static_cast<double>(request_.options.sequence);
    const double w =
        request_.window > 0 ? std::min(static_cast<double>(request_.window), whole) : whole;
    const double per_head = w * whole - w * w / 2;
    const int parts = graph_.degrees().whole_sequences ? 1 : graph_.degrees().cp;
    return per_head * static_cast<double>(s.batch * s.heads) / parts;
  }

  /// Chunked attention over cp: partial results are merged in fp32 by their log-sum-exp; backward,
  /// gradients are accumulated in fp32 (torch.distributed.tensor.experimental._attention).
  void merge_chunks(const FusedKernel& fused, std::int64_t elements, int cp, bool backward) {
    Kernel kernel;
    kernel.name = backward ? "attention.backward.accumulate" : "attention.merge";
    kernel.family = request_.compiled ? KernelFamily::kFused : KernelFamily::kEager;
    kernel.category = fused.ops[0].recompute ? Category::kRecompute : Category::kAttention;
    constexpr int kAccumulate = 3 * (2 + 4 + 4);         // dq, dk, dv: read bf16, add to fp32
    constexpr int kCast = 2 + 4, kUpdate = 12 + 8 + 12;  // difference, product, difference
    constexpr int kFusedUpdate = 2 + 4 + 4;
    if (backward) {
      kernel.repeat = (request_.compiled ? 1 : 3) * cp;
      kernel.bytes = elements * kAccumulate * cp;
    } else if (request_.compiled) {
      kernel.repeat = cp;
      kernel.bytes = elements * kFusedUpdate * cp;
    } else {
      kernel.repeat = cp + 3 * (cp - 1) + 1;
      kernel.bytes = elements * (kCast * cp + kUpdate * (cp - 1) + kCast);
    }
    kernels_.push_back(kernel);
    kernels_.back().recompute = fused.ops[0].recompute;
  }

  void memory_bound(const FusedKernel& fused, const Operator& op) {
    Kernel kernel;
    kernel.family = family(fused, op);
    kernel.category = category(fused);
    kernel.bytes = traffic(fused, op);
    kernel.host_waits = op.fn == Fn::kSortRows && request_.degrees.ep > 1;
    add(fused, kernel);
  }

  [[nodiscard]] KernelFamily family(const FusedKernel& fused, const Operator& op) const {
    switch (op.fn) {
      case Fn::kComplexMul:
      case Fn::kEmbedding:
      case Fn::kEmbeddingBackward:
      case Fn::kTopK:
      case Fn::kTopKBackward:
      case Fn::kSortRows:
      case Fn::kPermute:
      case Fn::kPermuteBackward:
      case Fn::kArrange:
      case Fn::kUnpermute:
      case Fn::kUnpermuteBackward:
        return KernelFamily::kStrided;
      case Fn::kHeadNorm:
      case Fn::kHeadNormBackward:
      case Fn::kNorm:
      case Fn::kNormBackward:
      case Fn::kRotary:
        return KernelFamily::kFused;
      case Fn::kCast:
        if (op.name != "fp8.quantise") break;
        return KernelFamily::kFused;
      case Fn::kSwiglu:
      case Fn::kFusedLoss:
      case Fn::kFusedLossBackward:
        return KernelFamily::kFused;
      case Fn::kLogSoftmax:
      case Fn::kLogSoftmaxBackward:
        return KernelFamily::kEagerReduce;
      default:
        break;
    }
    if (request_.compiled && fused.space != OpSpace::kExtern) return KernelFamily::kFused;
    if (op.fn == Fn::kExpandHeads || op.fn == Fn::kReduceHeads || op.fn == Fn::kTranspose ||
        op.fn == Fn::kConcat || op.name.starts_with("silu.view") ||
        (op.fn == Fn::kCopy && (op.name.starts_with("cp.") || op.name.starts_with("layout.")))) {
      return KernelFamily::kStrided;
    }
    return op.space == OpSpace::kPointwise ? KernelFamily::kEager : KernelFamily::kEagerReduce;
  }

  [[nodiscard]] Category category(const FusedKernel& fused) const {
    if (fused.ops[0].recompute) return Category::kRecompute;
    const bool quantising =
        std::all_of(fused.ops.begin(), fused.ops.end(),
                    [&](const Execution& e) { return graph_[e.op].name.starts_with("fp8."); });
    return quantising ? Category::kCast : Category::kPointwise;
  }

  [[nodiscard]] std::int64_t traffic(const FusedKernel& fused, const Operator& op) const {
    std::int64_t reads = 0, writes = 0;
    for (const TensorId t : fused.reads)
      reads += graph_.local_bytes(t);
    for (const TensorId t : fused.writes)
      writes += graph_.local_bytes(t);
    switch (op.fn) {
      case Fn::kEmbedding:  // reads only the rows that are looked up
        return 2 * writes;
      case Fn::kEmbeddingBackward:  // zeroes the table's gradient, then adds rows to it
        return writes + 3 * graph_.local_bytes(op.inputs[0]);
      case Fn::kPermute:  // reads a token for each of its rows
        return 2 * writes;
      case Fn::kTopK:
        return kTopKPasses * reads + writes;
      case Fn::kSortRows:
        return kSortPasses * (reads + writes);
      case Fn::kNllBackward:  // zeroes and scatters
        return writes;
      case Fn::kCast:  // a transposed copy beside it
        return reads + writes + (op.name == "fp8.quantise" ? writes : 0);
      case Fn::kNll:
      case Fn::kNllParallel:
        return 0;
      default:
        return reads + writes;
    }
  }

  // ---- memory --------------------------------------------------------------------------------

  /// Bytes that a tensor takes while it lives. Partial sums over cp are exchanged chunk by chunk,
  /// so a rank holds one chunk of them.
  [[nodiscard]] std::int64_t held_bytes(TensorId t) const {
    std::int64_t bytes = graph_.local_bytes(t);
    const bool partial = graph_.layout(t)[MeshDim::kContext].is_partial();
    if (partial && !is_parameter_gradient_[at(t)] && graph_[t].dims[1] > 1) {
      bytes /= graph_.degrees().cp;
    }
    return rounded(bytes);
  }

  /// Gradients of parameters leave the block as such; what is saved between the passes are
  /// activations; the head's tensors are the loss's.
  [[nodiscard]] MemoryComponent component(std::size_t t) const {
    if (is_parameter_gradient_[t]) return MemoryComponent::kUnreduced;
    if (is_boundary_[t]) return MemoryComponent::kActivations;  // passes from block to block
    const bool handed_on = input_gradient_.valid() && at(input_gradient_) == t;
    if (handed_on) return MemoryComponent::kTemporaries;  // and so does its gradient
    if (request_.kind == BlockKind::kHead) return MemoryComponent::kLoss;
    return saved_[t] ? MemoryComponent::kActivations : MemoryComponent::kTemporaries;
  }

  void settle(std::size_t t, bool held, bool kept, std::vector<TensorLife>& lives) {
    const TensorId id(static_cast<std::int32_t>(t));
    const Life& life = tensors_[t];
    if (life.alias || graph_[id].parameter != ParameterStyle::kNone || kernels_.empty()) return;
    if (life.made < 0 && !held) return;
    TensorLife out{t, held_bytes(id), life.made, -1};
    if (!kept) {
      out.freed = life.last_use >= 0 ? life.last_use : static_cast<int>(kernels_.size()) - 1;
    }
    if (out.made >= 0) {
      kernels_[static_cast<std::size_t>(out.made)].memory.allocate(component(t), out.bytes);
    }
    if (out.freed >= 0) {
      kernels_[static_cast<std::size_t>(out.freed)].memory.free(component(t), out.bytes);
    }
    lives.push_back(out);
  }

  const PlacedGraph& graph_;
  const BlockRequest& request_;
  const std::vector<FusedKernel>& fused_;
  const std::vector<bool>& saved_;
  std::vector<Life> tensors_;
  std::vector<bool> is_parameter_gradient_;
  std::vector<bool> is_boundary_;
  TensorId input_gradient_;
  std::vector<std::pair<TensorId, TensorId>> sources_;
  std::vector<Kernel> kernels_;
};

/// Logits of the head in the compute dtype: what the output projection writes.
std::int64_t logit_bytes(const DifferentiatedBlock& block) {
  for (int i = 0; i < block.forward_ops; ++i) {
    const Operator& op = block.graph[OpId(i)];
    if (op.fn == Fn::kLinear) return rounded(block.graph.local_bytes(op.outputs[0]));
  }
  return 0;
}

void count_parameters(const DifferentiatedBlock& block, bool shares_table, BlockKernels& out) {
  const PlacedGraph& g = block.graph;
  for (const ParameterGradient& p : block.parameter_gradients) {
    if (shares_table && g[p.parameter].parameter == ParameterStyle::kColumn) continue;
    const Dims dims = g.local_dims(p.parameter);
    out.parameter_count += dims[0] * dims[1] * dims[2];
    out.gathered_bytes += rounded(g.local_bytes(p.parameter));
    out.gradient_bytes += rounded(g.local_bytes(p.gradient));
    ++out.parameter_tensors;
    if (!of_experts(g[p.parameter].parameter)) continue;
    out.expert_count += dims[0] * dims[1] * dims[2];
    out.expert_gathered_bytes += rounded(g.local_bytes(p.parameter));
  }
}

}  // namespace

BlockKernels block_kernels(const ModelSpec& model, const BlockRequest& request) {
  const DifferentiatedBlock block = differentiate(build_block(request.kind, model, request.options),
                                                  request.degrees, request.autodiff);
  const BlockPasses passes =
      split_passes(block, request.recompute, request.compiled, request.save_list);
  const auto tensors = static_cast<std::size_t>(block.graph.graph().tensors());
  const auto index = [](TensorId id) { return static_cast<std::size_t>(id.index()); };
  const bool token_input = !block.graph[block.input].differentiable;

  std::vector<bool> held_forward(tensors, false), kept_forward = passes.saved;
  if (!token_input) held_forward[index(block.input)] = true;
  const bool loss = !block.output_gradient.valid();
  if (!loss) kept_forward[index(block.output)] = true;

  std::vector<bool> held_backward = passes.saved, kept_backward(tensors, false);
  if (!loss) held_backward[index(block.output_gradient)] = true;
  if (block.input_gradient.valid()) kept_backward[index(block.input_gradient)] = true;
  for (const ParameterGradient& p : block.parameter_gradients) {
    kept_backward[index(p.gradient)] = !request.accumulation;
  }
  std::vector<TensorLife> forward_lives, backward_lives;
  const auto lower = [&](const std::vector<Execution>& pass, const std::vector<bool>& held,
                         const std::vector<bool>& kept, std::vector<TensorLife>& lives) {
    const auto fused = fuse(block.graph, pass, kept, request.compiled);
    return PassLowering(block, request, fused, passes.saved).run(held, kept, lives);
  };
  BlockKernels out;
  out.compiled = request.compiled;
  out.forward = lower(passes.forward, held_forward, kept_forward, forward_lives);
  out.backward = lower(passes.backward, held_backward, kept_backward, backward_lives);
  PoolReplay replay;  // of the head both passes run one after the other
  replay.run(out.forward, forward_lives, !loss);
  if (!loss) replay = PoolReplay();
  replay.run(out.backward, backward_lives, true);
  if (loss) out.logit_bytes = logit_bytes(block);
  out.output_bytes = loss ? 0 : rounded(block.graph.local_bytes(block.output));
  count_parameters(block, request.shares_table, out);
  for (std::vector<Kernel>* pass : {&out.forward, &out.backward}) {
    if (request.async_tp) overlap_tensor_parallel(*pass, request.degrees.tp);
    if (request.ring) overlap_ring(*pass);
  }
  return out;
}

}  // namespace forerun

#include "model/autodiff.hpp"

#include <algorithm>

#include "base/contract.hpp"

namespace forerun {
namespace {

class Differentiator {
 public:
  Differentiator(const BlockGraph& block, const MeshDegrees& degrees,
                 const AutodiffOptions& options)
      : block_(block), options_(options), result_{PlacedGraph(degrees), 0, {}, {}, {}, {}, {}} {}

  DifferentiatedBlock run() {
    place_forward();
    derive_backward();
    return std::move(result_);
  }

 private:
  PlacedGraph& g() { return result_.graph; }

  // ---- forward -------------------------------------------------------------------------------

  void place_forward() {
    for (int i = 0; i < block_.graph.tensors(); ++i) {
      const Tensor& tensor = block_.graph[TensorId(i)];
      placed_.push_back(tensor.producer.valid() ? TensorId() : place_source(tensor));
    }
    for (int i = 0; i < block_.graph.ops(); ++i)
      place_op(block_.graph[OpId(i)]);
    result_.input = placed(block_.input);
    result_.output = placed(block_.output);
    if (!is_loss()) {
      result_.output = g().redistributed(result_.output, g().boundary_layout());
    }
    result_.forward_ops = g().graph().ops();
  }

  TensorId place_source(const Tensor& tensor) {
    Layout layout = g().parameter_layout(tensor.parameter);
    if (tensor.parameter == ParameterStyle::kNone) {
      layout = g().boundary_layout();
      const bool sequence = tensor.dims[1] > 1;
      if (!sequence) layout = {};
      if (!tensor.differentiable) layout[MeshDim::kTensor] = Placement::replicate();
    }
    return g().add_tensor(tensor, layout);
  }

  void place_op(const Operator& op) {
    Operator placed_op = op;
    for (TensorId& input : placed_op.inputs)
      input = placed(input);
    for (TensorId& held : placed_op.holds)
      held = placed(held);
    for (TensorId& output : placed_op.outputs) {
      Tensor tensor = block_.graph[output];
      tensor.producer = {};
      if (tensor.gradient_of.valid()) tensor.gradient_of = placed(tensor.gradient_of);
      placed_[static_cast<std::size_t>(output.index())] = g().add_tensor(tensor, {});
      output = placed(output);
    }
    g().add(placed_op);
  }

  [[nodiscard]] TensorId placed(TensorId id) const {
    const TensorId out = placed_[static_cast<std::size_t>(id.index())];
    FR_ASSERT(out.valid());
    return out;
  }

  [[nodiscard]] bool is_loss() const { return block_.graph[block_.output].elements() == 1; }

  // ---- backward ------------------------------------------------------------------------------

  void derive_backward() {
    g().forget_copies();
    if (!is_loss()) {
      Tensor tensor = g()[result_.output];
      tensor.producer = {};
      result_.output_gradient = g().add_tensor(tensor, g().layout(result_.output));
      set_gradient(result_.output, result_.output_gradient);
    }
    for (int i = result_.forward_ops - 1; i >= 0; --i)
      differentiate_op(OpId(i));
    if (g()[result_.input].differentiable) {
      result_.input_gradient = finished(result_.input, gradient(result_.input));
    }
    for (const TensorId parameter : block_.parameters)
      finish_parameter(placed(parameter));
  }

  void finish_parameter(TensorId parameter) {
    TensorId found = gradient(parameter);
    FR_ASSERT(found.valid());
    // Partial sums over cp are reduced with the gradients of the data-parallel ranks, those of
    // experts with the ranks that hold the same ones.
    const ParameterStyle style = g()[parameter].parameter;
    if (!of_experts(style)) {
      found = g().redistributed(found, MeshDim::kTensor, g().layout(parameter)[MeshDim::kTensor]);
    }
    result_.parameter_gradients.push_back({parameter, found});
  }

  /// A gradient in the layout that its tensor demands.
  TensorId finished(TensorId tensor, TensorId found) {
    for (const MeshDim dim : {MeshDim::kTensor, MeshDim::kContext, MeshDim::kExpert}) {
      found = g().redistributed(found, dim, gradient_placement(g().layout(tensor)[dim]));
    }
    return found;
  }

  [[nodiscard]] TensorId gradient(TensorId tensor) const {
    const auto index = static_cast<std::size_t>(tensor.index());
    return index < gradients_.size() ? gradients_[index] : TensorId();
  }

  void set_gradient(TensorId tensor, TensorId value) {
    const auto index = static_cast<std::size_t>(tensor.index());
    if (index >= gradients_.size()) gradients_.resize(index + 1);
    gradients_[index] = value;
  }

  /// Adds a contribution to the gradient of `tensor`; a second one costs an add kernel.
  void accumulate(TensorId tensor, TensorId contribution) {
    const TensorId known = gradient(tensor);
    set_gradient(tensor, known.valid() ? pointwise(Fn::kAdd, {known, contribution}, known,
                                                   "gradient.accumulate")
                                       : contribution);
  }

  TensorId apply(Fn fn, OpSpace space, std::initializer_list<TensorId> inputs, Dims dims,
                 DType dtype, std::string_view name) {
    Operator op;
    op.fn = fn;
    op.space = space;
    op.name = name;
    op.inputs.assign(inputs.begin(), inputs.end());
    const TensorId out =
        g().add_tensor({name, dtype, dims, ParameterStyle::kNone, true, {}, {}}, {});
    op.outputs.push_back(out);
    g().add(op);
    return out;
  }

  TensorId pointwise(Fn fn, std::initializer_list<TensorId> inputs, TensorId like,
                     std::string_view name) {
    const Tensor tensor = g()[like];
    return apply(fn, OpSpace::kPointwise, inputs, tensor.dims, tensor.dtype, name);
  }

  /// The gradient dtype of an activation: that of the value, fp8 values having bf16 gradients.
  [[nodiscard]] DType gradient_dtype(TensorId tensor) {
    const DType dtype = g()[tensor].dtype;
    return dtype == DType::kFp32 ? DType::kFp32 : DType::kBf16;
  }

  void differentiate_op(OpId id) {
    const Operator op = g()[id];
    const TensorId out = op.outputs[0];
    if (op.fn == Fn::kNll || op.fn == Fn::kNllParallel) return nll(op);
    if (op.fn == Fn::kFusedLoss) return fused_loss(op);
    if (op.fn == Fn::kSplit) return split(op);
    TensorId dy = gradient(out);
    if (!dy.valid()) return;
    if (op.fn == Fn::kRedistribute) return redistribute(id, op, dy);
    // A quantised linear casts its gradient before it is gathered.
    const bool casts_first =
        op.fn == Fn::kLinear && g()[op.inputs[0]].dtype == DType::kFp8 && !partial_somewhere(dy);
    if (!casts_first) dy = finished(out, dy);
    if (g()[out].gradient_of.valid()) return accumulate(g()[out].gradient_of, dy);
    rule(op, dy);
  }

  void rule(const Operator& op, TensorId dy) {
    const TensorId x = op.inputs[0];
    switch (op.fn) {
      case Fn::kAdd:
        accumulate(x, dy);
        return accumulate(op.inputs[1], dy);
      case Fn::kCopy:
        if (op.name.starts_with("layout.")) dy = pointwise(Fn::kCopy, {dy}, x, "layout.backward");
        return accumulate(x, dy);
      case Fn::kCast:
        return accumulate(x, apply(Fn::kCast, OpSpace::kPointwise, {dy}, g()[x].dims,
                                   gradient_dtype(x), "cast.backward"));
      case Fn::kMul:
        return mul(op, dy);
      case Fn::kSquare:
        return square(x, dy);
      case Fn::kRsqrt:
        return accumulate(x, pointwise(Fn::kMul, {dy, op.outputs[0]}, x, "rsqrt.backward"));
      case Fn::kMean:
        return accumulate(x, apply(Fn::kFill, OpSpace::kPointwise, {dy}, g()[x].dims, DType::kFp32,
                                   "mean.backward"));
      case Fn::kSilu:
      case Fn::kGelu:
        return accumulate(x, pointwise(op.fn, {dy, x}, x, "activation.backward"));
      case Fn::kSwiglu:
        return accumulate(x, pointwise(Fn::kSwiglu, {dy, x}, x, "swiglu.backward"));
      case Fn::kComplexMul:
      case Fn::kRotary:
        return accumulate(x, apply(op.fn, OpSpace::kExtern, {dy, op.inputs[1]}, g()[x].dims,
                                   g()[x].dtype, "rotary.backward"));
      case Fn::kExpandHeads:
        return accumulate(x, apply(Fn::kReduceHeads, OpSpace::kPointwise, {dy}, g()[x].dims,
                                   DType::kBf16, "repeat_kv.backward"));
      case Fn::kNorm:
        return norm(op, dy);
      case Fn::kHeadNorm:
        return head_norm(op, dy);
      case Fn::kTopK:
        return accumulate(x, apply(Fn::kTopKBackward, OpSpace::kExtern, {dy, op.outputs[1]},
                                   g()[x].dims, DType::kFp32, "router.top_k.backward"));
      case Fn::kPermute:
        return accumulate(x, apply(Fn::kPermuteBackward, OpSpace::kExtern, {dy, op.inputs[1]},
                                   g()[x].dims, DType::kBf16, "experts.permute.backward"));
      case Fn::kArrange:
        return accumulate(x, apply(Fn::kArrange, OpSpace::kExtern, {dy}, g()[x].dims, DType::kBf16,
                                   "experts.arrange.backward"));
      case Fn::kGroupedLinear:
        return grouped_linear(op, dy);
      case Fn::kUnpermute:
        return unpermute(op, dy);
      case Fn::kLinear:
        return linear(op, dy);
      case Fn::kAttention:
        return attention(op, dy);
      case Fn::kEmbedding:
        return embedding(op, dy);
      case Fn::kLogSoftmax:
        return accumulate(x, apply(Fn::kLogSoftmaxBackward, OpSpace::kExtern, {dy, op.outputs[0]},
                                   g()[x].dims, DType::kFp32, "loss.log_softmax.backward"));
      default:
        throw Bug("no backward rule for operator " + std::string(op.name));
    }
  }

  void fused_loss(const Operator& op) {
    const TensorId x = op.inputs[0];
    accumulate(x, apply(Fn::kFusedLossBackward, OpSpace::kExtern, {x}, g()[x].dims, DType::kBf16,
                        "loss.fused.backward"));
  }

  /// The parts' gradients are copied side by side.
  void split(const Operator& op) {
    const TensorId x = op.inputs[0];
    Operator concat;
    concat.fn = Fn::kConcat;
    concat.space = OpSpace::kPointwise;
    concat.name = "split.backward";
    for (const TensorId part : op.outputs) {
      const TensorId dy = gradient(part);
      FR_ASSERT(dy.valid());
      concat.inputs.push_back(finished(part, dy));
    }
    const Tensor whole = g()[x];
    concat.outputs = {g().add_tensor(
        {"split.dx", whole.dtype, whole.dims, ParameterStyle::kNone, true, {}, {}}, {})};
    g().add(concat);
    accumulate(x, concat.outputs[0]);
  }

  [[nodiscard]] bool partial_somewhere(TensorId t) const {
    const Layout layout = result_.graph.layout(t);
    return layout[MeshDim::kTensor].is_partial() || layout[MeshDim::kContext].is_partial();
  }

  [[nodiscard]] bool quantised_linear(OpId id) const {
    if (!id.valid()) return false;
    const Operator& op = result_.graph[id];
    return op.fn == Fn::kLinear && result_.graph[op.inputs[0]].dtype == DType::kFp8;
  }

  void redistribute(OpId id, const Operator& op, TensorId dy) {
    const Redistribution r = g().redistribution(id);
    const TensorId source = op.inputs[0];
    const bool casts_first = quantised_linear(g()[source].producer) && dy_is_shard(dy, r.dim);
    if (casts_first) return accumulate(source, dy);
    accumulate(source, g().redistributed(dy, r.dim, gradient_placement(r.from)));
  }

  [[nodiscard]] bool dy_is_shard(TensorId dy, MeshDim dim) const {
    return result_.graph.layout(dy)[dim].is_shard();
  }

  void mul(const Operator& op, TensorId dy) {
    const TensorId a = op.inputs[0], b = op.inputs[1];
    if (g()[a].differentiable) accumulate(a, pointwise(Fn::kMul, {dy, b}, a, "mul.backward.a"));
    if (!g()[b].differentiable) return;
    const TensorId product = pointwise(Fn::kMul, {dy, a}, a, "mul.backward.b");
    const Dims dims = g()[b].dims;
    if (g()[b].elements() == g()[a].elements()) return accumulate(b, product);
    const bool vector = dims[1] == 1;
    accumulate(b, apply(vector ? Fn::kColumnSum : Fn::kSum,
                        vector ? OpSpace::kColumnReduction : OpSpace::kRowReduction, {product},
                        dims, g()[b].dtype, "mul.backward.sum"));
  }

  void square(TensorId x, TensorId dy) {  // pow(x, 2): x^1, times 2, times dy
    const TensorId power = pointwise(Fn::kCopy, {x}, x, "square.backward.pow");
    const TensorId twice = pointwise(Fn::kScale, {power}, x, "square.backward.scale");
    accumulate(x, pointwise(Fn::kMul, {dy, twice}, x, "square.backward.mul"));
  }

  void norm(const Operator& op, TensorId dy) {
    const TensorId x = op.inputs[0], w = op.inputs[1];
    Operator backward;
    backward.fn = Fn::kNormBackward;
    backward.space = OpSpace::kRowReduction;
    backward.name = "norm.backward";
    backward.inputs = {dy, x, w};
    const Tensor weight = g()[w];
    backward.outputs = {
        g().add_tensor({"norm.dx", DType::kBf16, g()[x].dims, ParameterStyle::kNone, true, {}, {}},
                       {}),
        g().add_tensor({"norm.dw", weight.dtype, weight.dims, ParameterStyle::kNone, true, {}, {}},
                       {})};
    g().add(backward);
    accumulate(x, backward.outputs[0]);
    accumulate(w, backward.outputs[1]);
  }

  /// An operator with two outputs shaped like two of its inputs.
  Operator two_gradients(Fn fn, std::string_view name, std::initializer_list<TensorId> inputs,
                         TensorId first, TensorId second) {
    Operator backward;
    backward.fn = fn;
    backward.space = OpSpace::kExtern;
    backward.name = name;
    backward.inputs.assign(inputs.begin(), inputs.end());
    for (const TensorId like : {first, second}) {
      const Tensor of = g()[like];
      backward.outputs.push_back(
          g().add_tensor({name, of.dtype, of.dims, ParameterStyle::kNone, true, {}, {}}, {}));
    }
    g().add(backward);
    return backward;
  }

  void head_norm(const Operator& op, TensorId dy) {
    const TensorId x = op.inputs[0], w = op.inputs[1];
    const Operator made =
        two_gradients(Fn::kHeadNormBackward, "head_norm.backward", {dy, x, w}, x, w);
    accumulate(x, made.outputs[0]);
    accumulate(w, made.outputs[1]);
  }

  void grouped_linear(const Operator& op, TensorId dy) {
    const TensorId x = op.inputs[0], w = op.inputs[1];
    const Dims in = g()[x].dims, weight = g()[w].dims;
    const TensorId dx =
        apply(Fn::kGroupedDgrad, OpSpace::kExtern, {dy, w}, in, DType::kBf16, op.name);
    const TensorId dw = apply(Fn::kGroupedWgrad, OpSpace::kExtern, {dgrad_operand(dx), x}, weight,
                              DType::kBf16, op.name);
    accumulate(x, dx);
    accumulate(w, dw);
  }

  void unpermute(const Operator& op, TensorId dy) {
    const TensorId rows = op.inputs[0], weights = op.inputs[1];
    const Operator made = two_gradients(Fn::kUnpermuteBackward, "experts.unpermute.backward",
                                        {dy, rows, weights, op.inputs[2]}, rows, weights);
    accumulate(rows, made.outputs[0]);
    accumulate(weights, made.outputs[1]);
  }

  /// What the backward pass reads of a linear's input: as saved, or gathered again.
  [[nodiscard]] TensorId saved(TensorId x) const {
    return options_.regather_in_backward ? result_.graph.source(x) : x;
  }

  void linear(const Operator& op, TensorId dy) {
    const TensorId x = op.inputs[0], w = op.inputs[1];
    TensorId xs = saved(x), ws = w;
    const bool fp8 = g()[x].dtype == DType::kFp8;
    TensorId dy_wgrad = dy;
    const bool transposes = fp8 && !options_.fused_quantise;
    if (fp8) dy = quantised(dy);
    if (transposes) {
      // cuBLAS wants the second operand column-major: transposed copies of weight, dy and x.
      ws = pointwise(Fn::kTranspose, {w}, w, "fp8.weight.transpose");
      dy_wgrad = dy;
    }
    const Dims in = g()[x].dims, weight = g()[w].dims;
    const TensorId dx =
        apply(Fn::kLinearDgrad, OpSpace::kExtern, {dy, ws}, in, DType::kBf16, op.name);
    // The weight gradient reads dy laid out as the input gradient did.
    dy_wgrad = dgrad_operand(dx);
    if (transposes) {
      dy_wgrad = pointwise(Fn::kTranspose, {dy_wgrad}, dy_wgrad, "fp8.gradient.transpose");
      xs = pointwise(Fn::kTranspose, {xs}, xs, "fp8.input.transpose");
    }
    const TensorId dw =
        apply(Fn::kLinearWgrad, OpSpace::kExtern, {dy_wgrad, xs}, weight, DType::kBf16, op.name);
    accumulate(x, dx);
    accumulate(weight_source(w), dw);
  }

  [[nodiscard]] TensorId dgrad_operand(TensorId dx) const {
    return result_.graph[result_.graph[dx].producer].inputs[0];
  }

  /// A weight cast inside the block passes its gradient to the parameter.
  [[nodiscard]] TensorId weight_source(TensorId w) const {
    const TensorId of = result_.graph[w].gradient_of;
    return of.valid() ? of : w;
  }

  TensorId quantised(TensorId dy) {
    if (options_.fused_quantise) {
      return apply(Fn::kCast, OpSpace::kPointwise, {dy}, g()[dy].dims, DType::kFp8, "fp8.quantise");
    }
    const TensorId magnitude = pointwise(Fn::kAbs, {dy}, dy, "fp8.gradient.abs");
    const TensorId amax = apply(Fn::kMax, OpSpace::kFullReduction, {magnitude}, {1, 1, 1},
                                DType::kFp32, "fp8.gradient.amax");
    const Dims dims = g()[dy].dims;
    const TensorId wide =
        apply(Fn::kCast, OpSpace::kPointwise, {dy}, dims, DType::kFp32, "fp8.gradient.float");
    const TensorId scaled = apply(Fn::kScale, OpSpace::kPointwise, {wide, amax}, dims, DType::kFp32,
                                  "fp8.gradient.scale");
    const TensorId clamped = pointwise(Fn::kScale, {scaled}, scaled, "fp8.gradient.clamp");
    return apply(Fn::kCast, OpSpace::kPointwise, {clamped}, dims, DType::kFp8, "fp8.gradient");
  }

  void attention(const Operator& op, TensorId dy) {
    const TensorId q = op.inputs[0];
    // Keys and values are saved as this rank's part and gathered over cp again; heads stay.
    const bool by_heads = g().degrees().whole_sequences;
    const TensorId k = by_heads ? op.inputs[1] : result_.graph.source(op.inputs[1]);
    const TensorId v = by_heads ? op.inputs[2] : result_.graph.source(op.inputs[2]);
    Operator backward;
    backward.fn = Fn::kAttentionBackward;
    backward.space = OpSpace::kExtern;
    backward.name = "attention.backward";
    backward.inputs = {dy, q, k, v, op.outputs[0], op.outputs[1]};
    for (std::size_t i = 2; i < op.outputs.size(); ++i)
      backward.inputs.push_back(op.outputs[i]);
    // With cp the gradients of keys and values are summed over ranks in fp32.
    const bool chunked = g().degrees().cp > 1 && !g().degrees().whole_sequences;
    const DType dkv = chunked ? DType::kFp32 : DType::kBf16;
    for (const auto& [like, dtype] : {std::pair{q, DType::kBf16}, {k, dkv}, {v, dkv}}) {
      backward.outputs.push_back(g().add_tensor(
          {"attention.gradient", dtype, g()[like].dims, ParameterStyle::kNone, true, {}, {}}, {}));
    }
    g().add(backward);
    accumulate(q, backward.outputs[0]);
    accumulate_kv(k, backward.outputs[1]);
    accumulate_kv(v, backward.outputs[2]);
  }

  void accumulate_kv(TensorId tensor, TensorId contribution) {
    const MeshDim cp = MeshDim::kContext;
    contribution = g().redistributed(contribution, cp, gradient_placement(g().layout(tensor)[cp]));
    if (g()[contribution].dtype == DType::kFp32) {
      contribution = apply(Fn::kCast, OpSpace::kPointwise, {contribution}, g()[tensor].dims,
                           DType::kBf16, "attention.gradient.cast");
    }
    accumulate(tensor, contribution);
  }

  void embedding(const Operator& op, TensorId dy) {
    const TensorId table = op.inputs[1];
    accumulate(table, apply(Fn::kEmbeddingBackward, OpSpace::kExtern, {dy, op.inputs[0], table},
                            g()[table].dims, DType::kBf16, "embedding.backward"));
  }

  void nll(const Operator& op) {
    const TensorId x = op.inputs[0];
    const TensorId scattered = apply(Fn::kNllBackward, OpSpace::kExtern, {x}, g()[x].dims,
                                     DType::kFp32, "loss.nll.backward");
    if (op.fn == Fn::kNll) return accumulate(x, scattered);
    // On shards (exp(log_softmax) + scattered) x gradient is the gradient of the logits.
    const TensorId exponent = pointwise(Fn::kExp, {x}, x, "loss.exp.backward");
    const TensorId sum = pointwise(Fn::kAdd, {scattered, exponent}, x, "loss.add.backward");
    const TensorId scaled = pointwise(Fn::kScale, {sum}, x, "loss.scale.backward");
    g().graph()[g()[scaled].producer].holds = {scattered, x};
    accumulate(x, scaled);
  }

  const BlockGraph& block_;
  AutodiffOptions options_;
  DifferentiatedBlock result_;
  std::vector<TensorId> placed_;
  std::vector<TensorId> gradients_;
};

}  // namespace

DifferentiatedBlock differentiate(const BlockGraph& block, const MeshDegrees& degrees,
                                  const AutodiffOptions& options) {
  return Differentiator(block, degrees, options).run();
}

}  // namespace forerun

#include "workloads/block_builder.hpp"

#include <algorithm>

namespace forerun {

namespace {
constexpr int kFirst = 1, kSecond = 2, kThird = 4, kFourth = 8;
}

TensorId BlockBuilder::input(std::string_view name, Dims dims, DType dtype, bool differentiable) {
  return block_.graph.add_tensor(
      {name, dtype, dims, ParameterStyle::kNone, differentiable, {}, {}});
}

TensorId BlockBuilder::weight(std::string_view name, std::int64_t out, std::int64_t in,
                              ParameterStyle style) {
  const bool fp8 = options_.fp8 && options_.fp8_weights && style != ParameterStyle::kVocabulary;
  const DType dtype = fp8 ? DType::kFp8 : DType::kBf16;
  const TensorId id = block_.graph.add_tensor({name, dtype, {out, in, 1}, style, true, {}, {}});
  block_.parameters.push_back(id);
  return id;
}

TensorId BlockBuilder::weight_vector(std::string_view name, std::int64_t size) {
  const TensorId id = block_.graph.add_tensor(
      {name, DType::kBf16, {1, 1, size}, ParameterStyle::kReplicated, true, {}, {}});
  block_.parameters.push_back(id);
  return id;
}

TensorId BlockBuilder::apply(Fn fn, OpSpace space, std::initializer_list<TensorId> inputs,
                             Dims dims, DType dtype, std::string_view name, int saves_inputs,
                             int saves_outputs) {
  Operator op;
  op.fn = fn;
  op.space = space;
  op.name = name;
  bool differentiable = false;
  for (const TensorId id : inputs) {
    op.inputs.push_back(id);
    differentiable |= block_.graph[id].differentiable;
  }
  op.saves_inputs = static_cast<std::uint8_t>(saves_inputs);
  op.saves_outputs = static_cast<std::uint8_t>(saves_outputs);
  const TensorId out =
      block_.graph.add_tensor({name, dtype, dims, ParameterStyle::kNone, differentiable, {}, {}});
  op.outputs.push_back(out);
  block_.graph.add(op);
  return out;
}

TensorId BlockBuilder::cast(TensorId x, DType dtype, std::string_view name) {
  const Dims dims = block_.graph[x].dims;
  return apply(Fn::kCast, OpSpace::kPointwise, {x}, dims, dtype, name);
}

TensorId BlockBuilder::add(TensorId a, TensorId b, std::string_view name) {
  const Tensor& like = block_.graph[a];
  return apply(Fn::kAdd, OpSpace::kPointwise, {a, b}, like.dims, like.dtype, name);
}

TensorId BlockBuilder::mul(TensorId a, TensorId b, std::string_view name) {
  const Tensor like = block_.graph[a];
  const int saved =
      (block_.graph[b].differentiable ? kFirst : 0) | (like.differentiable ? kSecond : 0);
  return apply(Fn::kMul, OpSpace::kPointwise, {a, b}, like.dims, like.dtype, name, saved);
}

TensorId BlockBuilder::pointwise(Fn fn, TensorId x, std::string_view name, bool saves_input) {
  const Tensor like = block_.graph[x];
  return apply(fn, OpSpace::kPointwise, {x}, like.dims, like.dtype, name, saves_input ? kFirst : 0);
}

TensorId BlockBuilder::norm(TensorId x, std::string_view name) {
  const Dims dims = block_.graph[x].dims;
  const Dims row{dims[0], dims[1], 1};
  const TensorId w = weight_vector(name, dims[2]);
  if (options_.modules.fused_norm) {
    return apply(Fn::kNorm, OpSpace::kRowReduction, {x, w}, dims, DType::kBf16, name,
                 kFirst | kSecond);
  }
  const TensorId xf = cast(x, DType::kFp32, "norm.float");
  const TensorId square = pointwise(Fn::kSquare, xf, "norm.square", true);
  const TensorId mean =
      apply(Fn::kMean, OpSpace::kRowReduction, {square}, row, DType::kFp32, "norm.mean");
  const TensorId r =
      apply(Fn::kRsqrt, OpSpace::kPointwise, {mean}, row, DType::kFp32, "norm.rsqrt", 0, kFirst);
  const TensorId scaled = mul(xf, r, "norm.scale");
  return mul(cast(scaled, DType::kBf16, "norm.type_as"), w, "norm.weight");
}

TensorId BlockBuilder::rotary_table(TensorId like) {
  if (rotary_table_.valid()) return rotary_table_;
  const Dims dims = block_.graph[like].dims;
  rotary_table_ = input("freqs_cis", {1, dims[1], 1}, DType::kFp32, false);
  return rotary_table_;
}

TensorId BlockBuilder::rotary(TensorId x, std::string_view name) {
  const Tensor like = block_.graph[x];
  const TensorId table = rotary_table(x);
  if (options_.modules.fused_rotary) {
    return apply(Fn::kRotary, OpSpace::kExtern, {x, table}, like.dims, DType::kBf16, name);
  }
  const TensorId wide = cast(x, DType::kFp32, "rotary.float");
  const TensorId turned = apply(Fn::kComplexMul, OpSpace::kExtern, {wide, table}, like.dims,
                                DType::kFp32, "rotary.complex_mul");
  return cast(turned, DType::kBf16, name);
}

TensorId BlockBuilder::expand_heads(TensorId x, std::int64_t width, std::string_view name) {
  const Dims dims = block_.graph[x].dims;
  if (dims[2] == width) return x;
  return apply(Fn::kExpandHeads, OpSpace::kPointwise, {x}, {dims[0], dims[1], width}, DType::kBf16,
               name);
}

TensorId BlockBuilder::quantised(TensorId x, std::string_view name) {
  if (block_.graph[x].dtype == DType::kFp8) return x;
  const auto known = std::find_if(quantised_.begin(), quantised_.end(),
                                  [&](const auto& pair) { return pair.first == x; });
  if (options_.modules.quantise_once && known != quantised_.end()) return known->second;
  if (options_.modules.fused_quantise) {
    const TensorId out = cast(x, DType::kFp8, "fp8.quantise");
    block_.graph[out].gradient_of = x;
    quantised_.emplace_back(x, out);
    return out;
  }
  const TensorId magnitude = pointwise(Fn::kAbs, x, "fp8.abs");
  const TensorId amax =
      apply(Fn::kMax, OpSpace::kFullReduction, {magnitude}, {1, 1, 1}, DType::kFp32, "fp8.amax");
  block_.graph[magnitude].differentiable = block_.graph[amax].differentiable = false;
  const TensorId wide = cast(x, DType::kFp32, "fp8.float");
  const Dims dims = block_.graph[x].dims;
  const TensorId scaled =
      apply(Fn::kScale, OpSpace::kPointwise, {wide, amax}, dims, DType::kFp32, "fp8.scale");
  const TensorId clamped = pointwise(Fn::kScale, scaled, "fp8.clamp");
  const TensorId out = cast(clamped, DType::kFp8, name);
  block_.graph[out].gradient_of = x;
  quantised_.emplace_back(x, out);
  return out;
}

TensorId BlockBuilder::linear(TensorId x, TensorId w, std::string_view name) {
  const bool fp8 = options_.fp8 && block_.graph[w].parameter != ParameterStyle::kVocabulary;
  if (fp8) {
    x = quantised(x, "fp8.input");
    w = quantised(w, "fp8.weight");
  }
  const Dims dims = block_.graph[x].dims;
  const std::int64_t out = block_.graph[w].dims[0];
  return apply(Fn::kLinear, OpSpace::kExtern, {x, w}, {dims[0], dims[1], out}, DType::kBf16, name,
               kFirst | kSecond);
}

std::vector<TensorId> BlockBuilder::split(TensorId x, std::initializer_list<std::int64_t> widths,
                                          std::string_view name) {
  const Tensor whole = block_.graph[x];
  Operator op;
  op.fn = Fn::kSplit;
  op.space = OpSpace::kExtern;
  op.name = name;
  op.inputs = {x};
  for (const std::int64_t width : widths) {
    op.outputs.push_back(input(name, {whole.dims[0], whole.dims[1], width}, whole.dtype));
  }
  block_.graph.add(op);
  return {op.outputs.begin(), op.outputs.end()};
}

TensorId BlockBuilder::swiglu(TensorId x, std::string_view name) {
  const Tensor whole = block_.graph[x];
  return apply(Fn::kSwiglu, OpSpace::kPointwise, {x},
               {whole.dims[0], whole.dims[1], whole.dims[2] / 2}, whole.dtype, name, kFirst);
}

TensorId BlockBuilder::router(TensorId x, TensorId w) {
  const Dims dims = block_.graph[x].dims;
  return apply(Fn::kLinear, OpSpace::kExtern, {x, w}, {dims[0], dims[1], block_.graph[w].dims[0]},
               DType::kBf16, "router", kFirst | kSecond);
}

TensorId BlockBuilder::head_norm(TensorId x, std::int64_t head_dim, std::string_view name) {
  const TensorId w = weight_vector(name, head_dim);
  return apply(Fn::kHeadNorm, OpSpace::kExtern, {x, w}, block_.graph[x].dims, DType::kBf16, name,
               kFirst | kSecond);
}

TensorId BlockBuilder::expert_weight(std::string_view name, std::int64_t out, std::int64_t in,
                                     std::int64_t experts, ParameterStyle style) {
  const TensorId id =
      block_.graph.add_tensor({name, DType::kBf16, {out, in, experts}, style, true, {}, {}});
  block_.parameters.push_back(id);
  return id;
}

TensorId BlockBuilder::softmax(TensorId logits, std::string_view name) {
  const TensorId wide = cast(logits, DType::kFp32, "router.float");
  return apply(Fn::kLogSoftmax, OpSpace::kExtern, {wide}, block_.graph[wide].dims, DType::kFp32,
               name, 0, kFirst);
}

std::pair<TensorId, TensorId> BlockBuilder::top_k(TensorId scores, std::int64_t k) {
  const Dims dims = block_.graph[scores].dims, chosen{dims[0], dims[1], k};
  const TensorId weights = apply(Fn::kTopK, OpSpace::kExtern, {scores}, chosen, DType::kFp32,
                                 "router.top_k", 0, kSecond);
  const TensorId indices = block_.graph.add_tensor(
      {"router.indices", DType::kInt64, chosen, ParameterStyle::kNone, false, {}, {}});
  const OpId made = block_.graph[weights].producer;
  block_.graph[made].outputs.push_back(indices);
  block_.graph[indices].producer = made;
  return {weights, indices};
}

TensorId BlockBuilder::sort_rows(TensorId indices) {
  const Dims dims = block_.graph[indices].dims;
  return apply(Fn::kSortRows, OpSpace::kExtern, {indices}, {dims[0], dims[1] * dims[2], 1},
               DType::kInt64, "router.sort");
}

TensorId BlockBuilder::permute(TensorId tokens, TensorId order, std::int64_t rows) {
  const Dims dims = block_.graph[tokens].dims;
  return apply(Fn::kPermute, OpSpace::kExtern, {tokens, order}, {dims[0], rows, dims[2]},
               DType::kBf16, "experts.permute", kSecond);
}

TensorId BlockBuilder::arrange(TensorId rows, std::string_view name) {
  return apply(Fn::kArrange, OpSpace::kExtern, {rows}, block_.graph[rows].dims, DType::kBf16, name);
}

TensorId BlockBuilder::grouped_linear(TensorId rows, TensorId w, std::string_view name) {
  const Dims dims = block_.graph[rows].dims;
  return apply(Fn::kGroupedLinear, OpSpace::kExtern, {rows, w},
               {dims[0], dims[1], block_.graph[w].dims[0]}, DType::kBf16, name, kFirst | kSecond);
}

TensorId BlockBuilder::unpermute(TensorId rows, TensorId weights, TensorId order) {
  const Dims dims = block_.graph[rows].dims;
  const Dims tokens{dims[0], block_.graph[weights].dims[1], dims[2]};
  return apply(Fn::kUnpermute, OpSpace::kExtern, {rows, weights, order}, tokens, DType::kBf16,
               "experts.unpermute", kFirst | kSecond | kThird);
}

TensorId BlockBuilder::attention(TensorId q, TensorId k, TensorId v, std::int64_t heads) {
  const Dims dims = block_.graph[q].dims;
  if (options_.context_parallel > 1 && !options_.whole_sequences) {
    k = pointwise(Fn::kCopy, k, "cp.key.contiguous");
    v = pointwise(Fn::kCopy, v, "cp.value.contiguous");
  }
  Operator op;
  op.fn = Fn::kAttention;
  op.space = OpSpace::kExtern;
  op.name = "attention";
  op.inputs = {q, k, v};
  op.saves_inputs = kFirst | kSecond | kThird;
  op.saves_outputs = kFirst | kSecond;
  const TensorId out = input("attention.out", dims, DType::kBf16);
  const TensorId lse = input("attention.lse", {dims[0], dims[1], heads}, DType::kFp32, false);
  op.outputs = {out, lse};
  if (options_.unfused_attention) {
    // 5 bytes a score: probabilities, and behind the dropout its mask and its result
    // (Korthikanti et al. 2022, section 4.1).
    const std::int64_t scores = heads * dims[1];
    op.outputs.push_back(
        input("attention.probabilities", {dims[0], dims[1], scores}, DType::kBf16, false));
    op.outputs.push_back(
        input("attention.dropout", {dims[0], dims[1], 3 * scores}, DType::kBool, false));
    op.saves_outputs |= kThird | kFourth;
  }
  block_.graph.add(op);
  return out;
}

TensorId BlockBuilder::embedding(TensorId ids, TensorId table) {
  const Dims dims = block_.graph[ids].dims;
  const std::int64_t hidden = block_.graph[table].dims[1];
  return apply(Fn::kEmbedding, OpSpace::kExtern, {ids, table}, {dims[0], dims[1], hidden},
               DType::kBf16, "embedding", kFirst);
}

TensorId BlockBuilder::cross_entropy(TensorId logits) {
  const Dims dims = block_.graph[logits].dims;
  const TensorId wide = cast(logits, DType::kFp32, "loss.float");
  const TensorId log_softmax = apply(Fn::kLogSoftmax, OpSpace::kExtern, {wide}, dims, DType::kFp32,
                                     "loss.log_softmax", 0, kFirst);
  const TensorId loss =
      apply(Fn::kNll, OpSpace::kExtern, {log_softmax}, {1, 1, 1}, DType::kFp32, "loss.nll");
  hold(loss, {wide, logits});
  return loss;
}

TensorId BlockBuilder::fused_cross_entropy(TensorId logits) {
  return apply(Fn::kFusedLoss, OpSpace::kExtern, {logits}, {1, 1, 1}, DType::kFp32, "loss.fused",
               kFirst);
}

TensorId BlockBuilder::parallel_cross_entropy(TensorId logits) {
  const Dims dims = block_.graph[logits].dims, row{dims[0], dims[1], 1};
  const DType fp32 = DType::kFp32;
  const TensorId x = cast(logits, fp32, "loss.float");
  const TensorId largest = apply(Fn::kSum, OpSpace::kRowReduction, {x}, row, fp32, "loss.amax");
  const TensorId shifted =
      apply(Fn::kSubtract, OpSpace::kPointwise, {x, largest}, dims, fp32, "loss.shift");
  const TensorId exponent = pointwise(Fn::kExp, shifted, "loss.exp");
  const TensorId sum = apply(Fn::kSum, OpSpace::kRowReduction, {exponent}, row, fp32, "loss.sum");
  const TensorId log_softmax =
      apply(Fn::kSubtract, OpSpace::kPointwise, {shifted, sum}, dims, fp32, "loss.log_softmax");
  block_.graph[log_softmax].gradient_of = x;  // the loss's backward includes this one's
  hold(log_softmax, {x, shifted});
  const TensorId loss =
      apply(Fn::kNllParallel, OpSpace::kExtern, {log_softmax}, {1, 1, 1}, fp32, "loss.nll");
  hold(loss, {x, logits});
  return loss;
}

void BlockBuilder::hold(TensorId made, std::initializer_list<TensorId> held) {
  Operator& op = block_.graph[block_.graph[made].producer];
  op.holds.assign(held.begin(), held.end());
}

BlockGraph BlockBuilder::finish(TensorId input, TensorId output) {
  block_.input = input;
  block_.output = output;
  return std::move(block_);
}

}  // namespace forerun

#include "workloads/blocks.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/block_builder.hpp"

namespace forerun {
namespace {

TensorId attention_part(BlockBuilder& b, const ModelSpec& model, TensorId x) {
  const std::int64_t h = model.hidden, q_width = model.q_width(), kv_width = model.kv_width();
  const bool expand = b.options().modules.expand_kv;
  const TensorId n = b.norm(x, "attention_norm");
  TensorId q, k, v;
  if (b.options().modules.merged_projections) {
    const TensorId w = b.weight("wqkv", q_width + 2 * kv_width, h, ParameterStyle::kColumn);
    const auto parts = b.split(b.linear(n, w, "wqkv"), {q_width, kv_width, kv_width}, "qkv.split");
    q = parts[0], k = parts[1], v = parts[2];
  } else {
    const TensorId wq = b.weight("wq", q_width, h, ParameterStyle::kColumn);
    const TensorId wk = b.weight("wk", kv_width, h, ParameterStyle::kColumn);
    const TensorId wv = b.weight("wv", kv_width, h, ParameterStyle::kColumn);
    q = b.linear(n, wq, "wq");
    k = b.linear(n, wk, "wk");
    v = b.linear(n, wv, "wv");
  }
  if (b.options().modules.head_copies) {
    q = b.pointwise(Fn::kCopy, q, "layout.q");
    for (TensorId* t : {&k, &v}) {  // each part, then both side by side, then permuted
      for (int copy = 0; copy < 3; ++copy)
        *t = b.pointwise(Fn::kCopy, *t, "layout.kv");
    }
  }
  const TensorId wo = b.weight("wo", h, q_width, ParameterStyle::kRow);
  if (model.qk_norm) {
    q = b.head_norm(q, model.head_dim, "q_norm");
    k = b.head_norm(k, model.head_dim, "k_norm");
  }
  q = b.rotary(q, "rotary.q");
  k = b.rotary(k, "rotary.k");
  if (expand) {
    k = b.expand_heads(k, q_width, "repeat_kv.k");
    v = b.expand_heads(v, q_width, "repeat_kv.v");
  }
  return b.linear(b.attention(q, k, v, model.heads), wo, "wo");
}

TensorId mlp_part(BlockBuilder& b, const ModelSpec& model, TensorId n, std::int64_t f) {
  const std::int64_t h = model.hidden;
  const ModuleChoices& modules = b.options().modules;
  if (model.gated_mlp && modules.merged_projections) {
    const TensorId w13 = b.weight("w13", 2 * f, h, ParameterStyle::kColumn);
    const TensorId down = b.weight("w2", h, f, ParameterStyle::kRow);
    const TensorId both = b.linear(n, w13, "w13");
    if (modules.fused_activation) return b.linear(b.swiglu(both, "swiglu"), down, "w2");
    const auto parts = b.split(both, {f, f}, "w13.split");
    const TensorId active = b.pointwise(Fn::kSilu, parts[0], "silu.view", true);
    return b.linear(b.mul(active, parts[1], "silu.view.mul"), down, "w2");
  }
  const TensorId w1 = b.weight("w1", f, h, ParameterStyle::kColumn);
  const TensorId w2 = b.weight("w2", h, f, ParameterStyle::kRow);
  const TensorId gate = b.linear(n, w1, "w1");
  if (!model.gated_mlp) {
    return b.linear(b.pointwise(Fn::kGelu, gate, "gelu", true), w2, "w2");
  }
  const TensorId w3 = b.weight("w3", f, h, ParameterStyle::kColumn);
  const TensorId activated = b.pointwise(Fn::kSilu, gate, "silu", true);
  const TensorId up = b.linear(n, w3, "w3");
  return b.linear(b.mul(activated, up, "silu.mul"), w2, "w2");
}

/// The experts of one rank over the rows that reach it.
TensorId experts_part(BlockBuilder& b, const ModelSpec& model, TensorId rows) {
  const std::int64_t h = model.hidden, f = model.expert_ffn;
  const bool cut = b.options().experts_cut;
  const auto column = cut ? ParameterStyle::kExpertColumn : ParameterStyle::kExpert;
  const auto row = cut ? ParameterStyle::kExpertRow : ParameterStyle::kExpert;
  const std::int64_t local = std::max<std::int64_t>(1, model.experts / b.options().expert_parallel);
  const TensorId w1 = b.expert_weight("experts.w1", f, h, local, column);
  const TensorId w2 = b.expert_weight("experts.w2", h, f, local, row);
  const TensorId gate = b.grouped_linear(rows, w1, "experts.w1");
  if (!model.gated_mlp) {
    return b.grouped_linear(b.pointwise(Fn::kGelu, gate, "experts.gelu", true), w2, "experts.w2");
  }
  const TensorId w3 = b.expert_weight("experts.w3", f, h, local, column);
  const TensorId activated = b.pointwise(Fn::kSilu, gate, "experts.silu", true);
  const TensorId up = b.grouped_linear(rows, w3, "experts.w3");
  return b.grouped_linear(b.mul(activated, up, "experts.silu.mul"), w2, "experts.w2");
}

TensorId moe_part(BlockBuilder& b, const ModelSpec& model, TensorId n) {
  const BlockOptions& o = b.options();
  const TensorId gate =
      b.weight("router", model.experts, model.hidden, ParameterStyle::kReplicated);
  const TensorId scores = b.softmax(b.router(n, gate), "router.softmax");
  const auto [weights, indices] = b.top_k(scores, model.top_k);
  const TensorId order = b.sort_rows(indices);
  const double balanced = static_cast<double>(o.sequence * model.top_k);
  const double fullest = o.expert_parallel > 1 ? balanced * o.imbalance : balanced;
  TensorId rows = b.permute(n, order, static_cast<std::int64_t>(std::ceil(fullest)));
  // Rows arrive by sending rank; experts want them together.
  const bool arranged = o.expert_parallel > 1 && model.experts > o.expert_parallel;
  if (arranged) rows = b.arrange(rows, "experts.arrange");
  TensorId out = experts_part(b, model, rows);
  if (arranged) out = b.arrange(out, "experts.arrange_back");
  const TensorId routed = b.unpermute(out, weights, order);
  if (model.shared_experts == 0) return routed;
  const TensorId shared = mlp_part(b, model, n, model.shared_experts * model.expert_ffn);
  return b.add(routed, shared, "shared_experts.add");
}

BlockGraph decoder(const ModelSpec& model, const BlockOptions& options, bool moe) {
  BlockBuilder b(options);
  const TensorId x = b.input("x", {options.batch, options.sequence, model.hidden}, DType::kBf16);
  const TensorId h = b.add(x, attention_part(b, model, x), "attention.residual");
  const TensorId n = b.norm(h, "ffn_norm");
  const TensorId mlp = moe ? moe_part(b, model, n) : mlp_part(b, model, n, model.ffn_hidden);
  return b.finish(x, b.add(h, mlp, "mlp.residual"));
}

BlockGraph embedding(const ModelSpec& model, const BlockOptions& options) {
  BlockBuilder b(options);
  const TensorId ids =
      b.input("tokens", {options.batch, options.sequence, 1}, DType::kInt64, false);
  const TensorId table =
      b.weight("tok_embeddings", model.vocab, model.hidden, ParameterStyle::kVocabulary);
  return b.finish(ids, b.embedding(ids, table));
}

BlockGraph head(const ModelSpec& model, const BlockOptions& options) {
  BlockOptions plain = options;
  plain.fp8 = false;  // the output projection stays in bf16
  BlockBuilder b(plain);
  const TensorId x = b.input("x", {options.batch, options.sequence, model.hidden}, DType::kBf16);
  const TensorId n = b.norm(x, "norm");
  const TensorId w = b.weight("output", model.vocab, model.hidden, ParameterStyle::kColumn);
  const TensorId logits = b.linear(n, w, "output");
  if (options.modules.fused_loss) return b.finish(x, b.fused_cross_entropy(logits));
  return b.finish(
      x, options.parallel_loss ? b.parallel_cross_entropy(logits) : b.cross_entropy(logits));
}

}  // namespace

BlockGraph build_block(BlockKind kind, const ModelSpec& model, const BlockOptions& options) {
  switch (kind) {
    case BlockKind::kEmbedding:
      return embedding(model, options);
    case BlockKind::kDecoder:
    case BlockKind::kMoeDecoder:
      return decoder(model, options, kind == BlockKind::kMoeDecoder);
    case BlockKind::kHead:
      break;
  }
  return head(model, options);
}

}  // namespace forerun

#include <fmt/format.h>

#include "report/json.hpp"
#include "report/report.hpp"

namespace forerun {

namespace {
constexpr std::int64_t kFlopsSequence = 8192;  // flops_per_token is stated at this length
}

std::string model_json(const ModelSpec& m) {
  const ParameterCount count = count_parameters(m);
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["status"] = "ok";
  out["name"] = m.name;
  out["source"] = m.source;
  out["parameters_total"] = count.total;
  out["parameters_without_vocabulary"] = count.total - count.embedding - count.head;
  out["parameters_active"] = count.active;
  out["layers"] = m.layers;
  out["hidden"] = m.hidden;
  out["ffn_hidden"] = m.ffn_hidden;
  out["heads"] = m.heads;
  out["kv_heads"] = m.kv_heads;
  out["head_dim"] = m.head_dim;
  out["vocab"] = m.vocab;
  out["tied_embeddings"] = m.tied_embeddings;
  out["experts"] = m.experts;
  out["top_k"] = m.top_k;
  out["flops_per_token"] = flops_per_token(m, kFlopsSequence, true);
  out["flops_per_token_sequence_length"] = kFlopsSequence;
  return document(out);
}

std::string model_text(const ModelSpec& m) {
  const ParameterCount count = count_parameters(m);
  return fmt::format(
      "{}: {} parameters ({} active)\n  {} layers, hidden {}, ffn {}, {} heads of {} ({} "
      "key/value), vocabulary {}{}\n  {:.4g} FLOP a token at sequence {} (causal attention "
      "halved)\n"
      "  source: {}\n",
      m.name, count.total, count.active, m.layers, m.hidden, m.ffn_hidden, m.heads, m.head_dim,
      m.kv_heads, m.vocab, m.tied_embeddings ? ", tied" : "",
      flops_per_token(m, kFlopsSequence, true), kFlopsSequence, m.source);
}

}  // namespace forerun

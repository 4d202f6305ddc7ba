#include "workloads/model_spec.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/catalog_file.hpp"
#include "base/yaml.hpp"
#include "workloads/foreign_formats.hpp"

namespace forerun {

namespace {

constexpr std::int64_t kMostLayers = 100'000;
constexpr std::int64_t kMostParameters = std::int64_t{1} << 53;

std::int64_t mlp_parameters(const ModelSpec& model, std::int64_t width) {
  return (model.gated_mlp ? 3 : 2) * model.hidden * width;
}

struct LayerCount {
  std::int64_t stored;
  std::int64_t active;
};

/// Attention and norms of a block.
std::int64_t outside_mlp(const ModelSpec& model) {
  const std::int64_t attention = 2 * model.hidden * (model.q_width() + model.kv_width());
  return attention + 2 * model.hidden + (model.qk_norm ? 2 * model.head_dim : 0);
}

std::int64_t dense_layer_parameters(const ModelSpec& model) {
  return outside_mlp(model) + mlp_parameters(model, model.ffn_hidden);
}

LayerCount moe_layer_parameters(const ModelSpec& model) {
  const std::int64_t router = model.hidden * model.experts;
  const std::int64_t expert = mlp_parameters(model, model.expert_ffn);
  const std::int64_t fixed = outside_mlp(model) + router + model.shared_experts * expert;
  return {fixed + model.experts * expert, fixed + model.top_k * expert};
}

/// All decoder blocks together.
LayerCount all_layers(const ModelSpec& model) {
  const std::int64_t dense = model.dense_layers() * dense_layer_parameters(model);
  const LayerCount moe = moe_layer_parameters(model);
  return {dense + model.moe_layers() * moe.stored, dense + model.moe_layers() * moe.active};
}

}  // namespace

ParameterCount count_parameters(const ModelSpec& model) {
  ParameterCount count;
  const LayerCount layers = all_layers(model);
  count.embedding = model.vocab * model.hidden;
  count.dense_layer = dense_layer_parameters(model);
  count.layer = model.moe() ? moe_layer_parameters(model).stored : count.dense_layer;
  count.final_norm = model.hidden;
  count.head = model.tied_embeddings ? 0 : model.vocab * model.hidden;
  const std::int64_t outside = count.embedding + count.final_norm + count.head;
  count.total = outside + layers.stored;
  count.active = outside + layers.active;
  return count;
}

namespace {

/// About count_parameters().total, in numbers that do not overflow.
double rough_parameters(const ModelSpec& model) {
  const auto d = [](std::int64_t n) { return static_cast<double>(n); };
  const double q = d(model.heads) * d(model.head_dim), kv = d(model.kv_heads) * d(model.head_dim);
  const double dense = 3 * d(model.hidden) * d(model.ffn_hidden);
  const double experts = (d(model.experts) + d(model.top_k) + d(model.shared_experts)) *
                         (1 + 3 * d(model.expert_ffn)) * d(model.hidden);
  return d(model.layers) * (2 * d(model.hidden) * (q + kv + 1) + dense + experts) +
         2 * d(model.vocab) * d(model.hidden);
}

}  // namespace

void check_model(const ModelSpec& model, const Place& place, const std::string& path) {
  struct Dimension {
    const char* key;
    std::int64_t value;
    std::int64_t least;
  };
  for (const Dimension& d : {Dimension{"layers", model.layers, 1},
                             {"hidden", model.hidden, 1},
                             {"ffn_hidden", model.ffn_hidden, 1},
                             {"heads", model.heads, 1},
                             {"kv_heads", model.kv_heads, 1},
                             {"head_dim", model.head_dim, 1},
                             {"vocab", model.vocab, 1},
                             {"experts", model.experts, 0},
                             {"top_k", model.top_k, model.moe() ? 1 : 0},
                             {"expert_ffn", model.expert_ffn, model.moe() ? 1 : 0},
                             {"shared_experts", model.shared_experts, 0},
                             {"first_k_dense", model.first_k_dense, 0},
                             {"moe_every", model.moe_every, 1},
                             {"window", model.window, 0}}) {
    if (d.value >= d.least) continue;
    throw InputError(place, (path.empty() ? "" : path + ".") + d.key,
                     fmt::format("found {}, must be at least {}", d.value, d.least));
  }
  if (model.layers > kMostLayers ||
      rough_parameters(model) > static_cast<double>(kMostParameters)) {
    throw InputError(place, path,
                     fmt::format("describes {} layers and about {:.2g} parameters; at most {} and "
                                 "2^53",
                                 model.layers, rough_parameters(model), kMostLayers));
  }
}

double flops_per_token(const ModelSpec& model, std::int64_t sequence_length, bool causal_halved) {
  const ParameterCount count = count_parameters(model);
  const double matmul_parameters =
      static_cast<double>(all_layers(model).active + model.vocab * model.hidden + count.final_norm);
  const double span = static_cast<double>(model.window > 0 ? std::min(model.window, sequence_length)
                                                           : sequence_length);
  const double attention = 12.0 * static_cast<double>(model.layers * model.q_width()) * span;
  return 6.0 * matmul_parameters + (causal_halved ? attention / 2 : attention);
}

ModelSpec read_model(const Node& node, const std::string& path, const std::string& name) {
  const MappingReader file(
      node, path,
      {"layers", "hidden", "ffn_hidden", "gated_mlp", "heads", "kv_heads", "head_dim", "vocab",
       "tied_embeddings", "experts", "top_k", "expert_ffn", "shared_experts", "first_k_dense",
       "moe_every", "qk_norm", "window", "source"});
  const auto count = integer_in({1, std::int64_t{1} << 30});
  ModelSpec model;
  model.name = name;
  model.source = file.optional("source", to_text_value).value_or("run file");
  model.layers = file.required("layers", integer_in({1, kMostLayers}));
  model.hidden = file.required("hidden", count);
  model.heads = file.required("heads", count);
  model.vocab = file.required("vocab", count);
  model.kv_heads = file.optional("kv_heads", count).value_or(model.heads);
  model.head_dim = file.optional("head_dim", count).value_or(0);
  model.gated_mlp = file.optional("gated_mlp", to_bool).value_or(true);
  model.tied_embeddings = file.optional("tied_embeddings", to_bool).value_or(false);
  model.experts = file.optional("experts", integer_in({0, 1 << 20})).value_or(0);
  model.expert_ffn = file.optional("expert_ffn", count).value_or(0);
  model.shared_experts = file.optional("shared_experts", integer_in({0, 1 << 20})).value_or(0);
  model.first_k_dense = file.optional("first_k_dense", integer_in({0, kMostLayers})).value_or(0);
  model.moe_every = file.optional("moe_every", integer_in({1, kMostLayers})).value_or(1);
  model.qk_norm = file.optional("qk_norm", to_bool).value_or(false);
  model.window = file.optional("window", integer_in({0, std::int64_t{1} << 40})).value_or(0);
  model.top_k = file.optional("top_k", count).value_or(0);
  if (model.moe() && model.top_k == 0) {
    throw InputError(file.need("experts").mark.place(), file.dotted("top_k"),
                     fmt::format("is missing: with {} experts, how many each token uses has no "
                                 "default",
                                 model.experts));
  }
  if (model.moe() && model.expert_ffn == 0) {
    model.expert_ffn = file.required("ffn_hidden", count);
  }
  const bool all_moe = model.moe() && model.dense_layers() == 0;
  model.ffn_hidden = all_moe ? file.optional("ffn_hidden", count).value_or(model.expert_ffn)
                             : file.required("ffn_hidden", count);
  if (model.head_dim == 0) {
    if (model.hidden % model.heads != 0) {
      throw InputError(file.place(), file.dotted("head_dim"),
                       "is missing, and hidden " + std::to_string(model.hidden) +
                           " is not a multiple of heads " + std::to_string(model.heads));
    }
    model.head_dim = model.hidden / model.heads;
  }
  check_model(model, file.place(), path);
  return model;
}

namespace {

bool is_path(const std::string& name) {
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  return name.find('/') != std::string::npos || ends(".yaml") || ends(".yml") || ends(".json");
}

}  // namespace

ModelSpec load_model(const DataPath& data, const std::string& name, const Place& place,
                     const std::string& key) {
  if (!is_path(name)) {
    return read_model(read_catalog_file(data, kModelFolder, "model", name, place, key), "", name);
  }
  const TextFile file = read_text_file(name);
  refuse_foreign(file);
  const Node root = parse_yaml(file.text, file.name);
  const Node* inner = root.find("model");  // of a run file
  if (inner == nullptr) return read_model(root, "", name);
  if (inner->kind != Node::Kind::kScalar) return read_model(*inner, "model", name);
  if (is_path(inner->scalar)) return read_model(read_yaml_file(inner->scalar), "", inner->scalar);
  return load_model(data, inner->scalar, inner->mark.place(), "model");
}

}  // namespace forerun

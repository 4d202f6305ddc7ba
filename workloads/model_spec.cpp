#include "workloads/model_spec.hpp"

#include <algorithm>

#include "base/catalog_file.hpp"
#include "base/yaml.hpp"

namespace forerun {

namespace {

std::int64_t mlp_parameters(const ModelSpec& model, std::int64_t width) {
  return (model.gated_mlp ? 3 : 2) * model.hidden * width;
}

struct LayerCount {
  std::int64_t stored;
  std::int64_t active;
};

LayerCount layer_parameters(const ModelSpec& model) {
  const std::int64_t attention = 2 * model.hidden * (model.q_width() + model.kv_width());
  const std::int64_t norms = 2 * model.hidden;
  if (!model.moe()) {
    const std::int64_t all = attention + norms + mlp_parameters(model, model.ffn_hidden);
    return {all, all};
  }
  const std::int64_t router = model.hidden * model.experts;
  const std::int64_t expert = mlp_parameters(model, model.expert_ffn);
  const std::int64_t fixed = attention + norms + router + model.shared_experts * expert;
  return {fixed + model.experts * expert, fixed + model.top_k * expert};
}

}  // namespace

ParameterCount count_parameters(const ModelSpec& model) {
  ParameterCount count;
  const LayerCount layer = layer_parameters(model);
  count.embedding = model.vocab * model.hidden;
  count.layer = layer.stored;
  count.final_norm = model.hidden;
  count.head = model.tied_embeddings ? 0 : model.vocab * model.hidden;
  const std::int64_t outside = count.embedding + count.final_norm + count.head;
  count.total = outside + model.layers * layer.stored;
  count.active = outside + model.layers * layer.active;
  return count;
}

double flops_per_token(const ModelSpec& model, std::int64_t sequence_length, bool causal_halved) {
  const ParameterCount count = count_parameters(model);
  const double matmul_parameters = static_cast<double>(
      model.layers * (layer_parameters(model).active) + model.vocab * model.hidden +
      count.final_norm);
  const double span = static_cast<double>(
      model.window > 0 ? std::min(model.window, sequence_length) : sequence_length);
  const double attention = 12.0 * static_cast<double>(model.layers * model.q_width()) * span;
  return 6.0 * matmul_parameters + (causal_halved ? attention / 2 : attention);
}

ModelSpec read_model(const Node& node, const std::string& path, const std::string& name) {
  const MappingReader file(
      node, path,
      {"layers", "hidden", "ffn_hidden", "gated_mlp", "heads", "kv_heads", "head_dim", "vocab",
       "tied_embeddings", "experts", "top_k", "expert_ffn", "shared_experts", "window", "source"});
  const auto count = integer_in({1, std::int64_t{1} << 30});
  ModelSpec model;
  model.name = name;
  model.source = file.optional("source", to_text_value).value_or("run file");
  model.layers = file.required("layers", integer_in({1, 100'000}));
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
  model.window = file.optional("window", integer_in({0, std::int64_t{1} << 40})).value_or(0);
  model.top_k = model.moe() ? file.required("top_k", count)
                            : file.optional("top_k", count).value_or(0);
  if (model.moe() && model.expert_ffn == 0) {
    model.expert_ffn = file.required("ffn_hidden", count);
  }
  model.ffn_hidden = model.moe() ? file.optional("ffn_hidden", count).value_or(model.expert_ffn)
                                 : file.required("ffn_hidden", count);
  if (model.head_dim == 0) {
    if (model.hidden % model.heads != 0) {
      throw InputError(file.place(), file.dotted("head_dim"),
                       "is missing, and hidden " + std::to_string(model.hidden) +
                           " is not a multiple of heads " + std::to_string(model.heads));
    }
    model.head_dim = model.hidden / model.heads;
  }
  return model;
}

ModelSpec load_model(const DataPath& data, const std::string& name, const Place& place,
                     const std::string& key) {
  if (name.ends_with(".json")) {
    throw Unsupported("reading a model from a config.json ('" + name +
                      "'); give a catalogue name or the dimensions inline");
  }
  if (name.find('/') != std::string::npos || name.ends_with(".yaml")) {
    return read_model(read_yaml_file(name), "", name);
  }
  return read_model(read_catalog_file(data, kModelFolder, "model", name, place, key), "", name);
}

}  // namespace forerun

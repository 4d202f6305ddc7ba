#pragma once

// Architecture of a decoder-only transformer; workloads/catalog/models/*.yaml or inline in a run.

#include <cstdint>
#include <string>

#include "base/data_path.hpp"
#include "base/mapping_reader.hpp"

namespace forerun {

struct ModelSpec {
  std::string name;
  std::string source;  ///< where the catalogue has it from
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn_hidden = 0;
  bool gated_mlp = true;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;
  bool tied_embeddings = false;
  std::int64_t experts = 0;  ///< 0 = dense
  std::int64_t top_k = 0;
  std::int64_t expert_ffn = 0;
  std::int64_t shared_experts = 0;
  std::int64_t first_k_dense = 0;  ///< leading layers of an MoE model whose MLP is dense
  std::int64_t moe_every = 1;      ///< layers moe_every - 1, 2 moe_every - 1, ... hold experts
  bool qk_norm = false;            ///< queries and keys are normalised head by head
  std::int64_t window = 0;         ///< sliding window of attention, 0 = full

  [[nodiscard]] std::int64_t q_width() const { return heads * head_dim; }
  [[nodiscard]] std::int64_t kv_width() const { return kv_heads * head_dim; }
  [[nodiscard]] bool moe() const { return experts > 1; }
  /// Whether the MLP of a layer (counted from 0) consists of experts.
  [[nodiscard]] bool moe_layer(std::int64_t layer) const {
    return moe() && layer >= first_k_dense && (layer + 1) % moe_every == 0;
  }
  [[nodiscard]] std::int64_t moe_layers() const {
    if (!moe() || first_k_dense >= layers) return 0;
    return layers / moe_every - first_k_dense / moe_every;
  }
  [[nodiscard]] std::int64_t dense_layers() const { return layers - moe_layers(); }
};

/// Weight counts; norms without bias, linear layers without bias, rotary positions.
struct ParameterCount {
  std::int64_t embedding = 0;    ///< token embedding, vocab x hidden
  std::int64_t layer = 0;        ///< one decoder block; of an MoE model one with experts
  std::int64_t dense_layer = 0;  ///< one decoder block with a dense MLP
  std::int64_t final_norm = 0;
  std::int64_t head = 0;  ///< output projection; 0 where tied
  std::int64_t total = 0;
  std::int64_t active = 0;  ///< used by one token
};
ParameterCount count_parameters(const ModelSpec& model);

/// Throws InputError for a model that cannot be counted: a dimension below 1, or more than 2^53
/// parameters.
void check_model(const ModelSpec& model, const Place& place, const std::string& path);

/// Model FLOPs of one token, forward and backward, without recompute: 6 per matmul parameter that a
/// token uses (of experts top_k and the shared ones, and the router; the embedding table is a
/// look-up and does not count) and 12 x layers x q_width x context, where the causal mask halves
/// the context that a token sees on average.
double flops_per_token(const ModelSpec& model, std::int64_t sequence_length, bool causal_halved);

/// Reads the keys of an inline model. Throws InputError.
ModelSpec read_model(const Node& node, const std::string& path, const std::string& name);

/// A catalogue name, or the path of a YAML file in the catalogue's format or of a run file.
ModelSpec load_model(const DataPath& data, const std::string& name, const Place& place,
                     const std::string& key);

inline constexpr const char* kModelFolder = "workloads/catalog/models";

}  // namespace forerun

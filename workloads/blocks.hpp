#pragma once

// The forward operator graphs of a model's blocks, as a stack's model code launches them in eager
// mode. Sources: torchtitan/models/llama/model.py and norms.py (December 2024); autograd's saved
// tensors follow PyTorch's derivatives.yaml.

#include "workloads/model_spec.hpp"
#include "workloads/modules.hpp"
#include "workloads/operator_graph.hpp"
#include "workloads/plan.hpp"

namespace forerun {

enum class BlockKind : std::uint8_t { kEmbedding, kDecoder, kHead, kMoeDecoder };
inline constexpr int kBlockKinds = 4;
constexpr auto enum_texts(BlockKind) {
  return std::array<std::string_view, kBlockKinds>{"embedding", "decoder", "head", "moe-decoder"};
}
FR_CHECK_ENUM(BlockKind, BlockKind::kMoeDecoder);
constexpr bool is_decoder(BlockKind kind) {
  return kind == BlockKind::kDecoder || kind == BlockKind::kMoeDecoder;
}

/// What of a plan shapes a block's operators.
struct BlockOptions {
  std::int64_t batch = 1;     ///< sequences of a microbatch
  std::int64_t sequence = 1;  ///< the whole sequence
  int context_parallel = 1;
  bool whole_sequences = false;    ///< context parallelism hands heads on, not keys and values
  bool unfused_attention = false;  ///< scores and probabilities are tensors
  bool fp8 = false;                ///< linears of decoder blocks in tensorwise dynamic fp8
  bool fp8_weights = true;         ///< weights arrive quantised (fp8 all-gather)
  bool parallel_loss = false;      ///< cross-entropy on vocabulary shards
  int expert_parallel = 1;
  bool experts_cut = false;  ///< each expert is cut over tp
  double imbalance = 1;      ///< rows of the fullest rank over the mean
  ModuleChoices modules;
};

/// The graph of one block. For the head: final norm, output projection, cross-entropy.
BlockGraph build_block(BlockKind kind, const ModelSpec& model, const BlockOptions& options);

}  // namespace forerun

#pragma once

// Small vocabulary to write operator graphs with: one function an operator, which adds it to the
// graph and returns its output.

#include <initializer_list>
#include <utility>
#include <vector>

#include "workloads/blocks.hpp"

namespace forerun {

class BlockBuilder {
 public:
  explicit BlockBuilder(const BlockOptions& options) : options_(options) {}

  TensorId input(std::string_view name, Dims dims, DType dtype, bool differentiable = true);
  TensorId weight(std::string_view name, std::int64_t out, std::int64_t in, ParameterStyle style);
  TensorId weight_vector(std::string_view name, std::int64_t size);

  TensorId cast(TensorId x, DType dtype, std::string_view name);
  TensorId add(TensorId a, TensorId b, std::string_view name);
  TensorId mul(TensorId a, TensorId b, std::string_view name);
  TensorId pointwise(Fn fn, TensorId x, std::string_view name, bool saves_input = false);
  TensorId norm(TensorId x, std::string_view name);
  TensorId rotary(TensorId x, std::string_view name);
  TensorId expand_heads(TensorId x, std::int64_t width, std::string_view name);
  /// A linear layer in the compute dtype of the block (fp8 adds the quantising operators).
  TensorId linear(TensorId x, TensorId w, std::string_view name);
  /// Views of consecutive parts of the features.
  std::vector<TensorId> split(TensorId x, std::initializer_list<std::int64_t> widths,
                              std::string_view name);
  /// silu(first half of the features) x second half, in one kernel.
  TensorId swiglu(TensorId x, std::string_view name);
  /// The product in bf16 even where linears are fp8.
  TensorId router(TensorId x, TensorId w);
  /// RMSNorm of each head, one kernel.
  TensorId head_norm(TensorId x, std::int64_t head_dim, std::string_view name);

  // Mixture of experts. Expert products stay in bf16: tensorwise fp8 does not convert grouped ones.
  TensorId expert_weight(std::string_view name, std::int64_t out, std::int64_t in,
                         std::int64_t experts, ParameterStyle style);
  TensorId softmax(TensorId logits, std::string_view name);
  /// Weights (fp32) and indices of the chosen experts.
  std::pair<TensorId, TensorId> top_k(TensorId scores, std::int64_t k);
  TensorId sort_rows(TensorId indices);
  TensorId permute(TensorId tokens, TensorId order, std::int64_t rows);
  TensorId arrange(TensorId rows, std::string_view name);
  TensorId grouped_linear(TensorId rows, TensorId w, std::string_view name);
  TensorId unpermute(TensorId rows, TensorId weights, TensorId order);

  TensorId attention(TensorId q, TensorId k, TensorId v, std::int64_t heads);
  TensorId embedding(TensorId ids, TensorId table);
  /// Cross-entropy of bf16 logits through fp32, as F.cross_entropy(logits.float(), ...) runs it.
  TensorId cross_entropy(TensorId logits);
  /// The same in one kernel a pass.
  TensorId fused_cross_entropy(TensorId logits);
  /// The same on vocabulary shards (torch.distributed.tensor.parallel.loss_parallel).
  TensorId parallel_cross_entropy(TensorId logits);

  BlockGraph finish(TensorId input, TensorId output);
  [[nodiscard]] const BlockOptions& options() const { return options_; }

 private:
  TensorId apply(Fn fn, OpSpace space, std::initializer_list<TensorId> inputs, Dims dims,
                 DType dtype, std::string_view name, int saves_inputs = 0, int saves_outputs = 0);
  /// The operator that made a tensor runs while variables still hold these.
  void hold(TensorId made, std::initializer_list<TensorId> held);
  TensorId quantised(TensorId x, std::string_view name);
  TensorId rotary_table(TensorId like);

  BlockOptions options_;
  BlockGraph block_;
  std::vector<std::pair<TensorId, TensorId>> quantised_;
  TensorId rotary_table_;
};

}  // namespace forerun

#pragma once

// Forecasts to render.

#include <string>
#include <vector>

#include "study/predict.hpp"
#include "tests/support/plans.hpp"

namespace forerun::test {

inline const StudyContext& context() {
  static const StudyContext c(source_data());
  return c;
}

inline Forecast explained(const Job& job, EngineKind engine = EngineKind::kAnalytic) {
  PredictRequest request;
  request.job = job;
  request.engine = engine;
  return predict(request, context()).forecast;
}

inline const std::string kEight =
    "cluster: {name: grand-teton-h100-95gb, gpus: 8}\n"
    "model: llama3-8b\n"
    "training: {sequence_length: 8192, micro_batch: 2, global_batch: 16}\n"
    "software: torchtitan-2024-12\n";

/// Runs that differ in every section of a run file.
inline const std::vector<std::string>& runs() {
  static const std::vector<std::string> all{
      kEight,
      kEight +
          "parallelism: {dp_shard: 4, tp: 2, sequence_parallel: true}\n"
          "execution: {compile: true, recompute: full, loss: parallel, async_tp: true}\n",
      // With numbers that have no short decimal.
      "cluster: {name: dgx-h100, gpus: 64, nic: {count: 8, bandwidth: 333333333333 b/s}, "
      "oversubscription: 1.7}\n"
      "model: llama3-8b\n"
      "training: {sequence_length: 4096, micro_batch: 1, global_batch: 64, "
      "precision: fp8-tensorwise}\n"
      "parallelism: {dp_shard: 8, cp: 2, pp: 4, virtual_stages: 2, "
      "schedule: interleaved-1f1b, mesh_order: [pp, dp_shard, cp, dp_replicate, tp]}\n"
      "execution: {compile: true, recompute: selective-attention}\n"
      "software: torchtitan-2024-12\n"
      "measured: {allgather_busbw: 123.4567891 GB/s}\n",
      "cluster: {name: grand-teton-h100-95gb, gpus: 32, gpu: {name: h100-sxm-95gb, "
      "memory: 70.3 GiB}}\n"
      "model: {layers: 15, hidden: 3072, ffn_hidden: 8000, heads: 24, kv_heads: 8, "
      "head_dim: 128, vocab: 32001, gated_mlp: true, tied_embeddings: false}\n"
      "training: {sequence_length: 2048, micro_batch: 4, global_batch: 512}\n"
      "parallelism: {dp_shard: 8, pp: 4, stage_layers: [3, 4, 5, 3]}\n"
      "software: generic\n",
  };
  return all;
}

}  // namespace forerun::test

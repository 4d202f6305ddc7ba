#pragma once

// Runs of every software stack and of what only some stacks do, as YAML, for tests that hold for
// all.

#include <string>
#include <vector>

#include "model/cost/profile.hpp"
#include "tests/support/plans.hpp"

namespace forerun::test {

/// A run of `gpus` GPUs; `parallelism` and `execution` as in a run file, without braces.
inline std::string run_of(const std::string& software, int gpus, const std::string& parallelism,
                          const std::string& execution = "recompute: none",
                          const std::string& training = "precision: bf16",
                          const std::string& cluster = "dgx-h100") {
  return "cluster: {name: " + cluster + ", gpus: " + std::to_string(gpus) +
         "}\n"
         "model: {layers: 8, hidden: 2048, ffn_hidden: 5632, heads: 16, kv_heads: 8, vocab: "
         "32000}\n"
         "training: {sequence_length: 4096, micro_batch: 1, global_batch: 64, " +
         training + "}\nparallelism: {" + parallelism + "}\nexecution: {" + execution +
         "}\nsoftware: " + software + "\n";
}

inline std::vector<std::string> runs_of_all_stacks() {
  const std::string tp = "dp_shard: 1, dp_replicate: -1, tp: 4, zero_stage: 1";
  const std::string pipe = tp + ", pp: 4";
  std::vector<std::string> out;
  for (const char* stack : {"megatron-2025-03", "nemo-2025-06", "nemo-2024-03", "megatron-2022-05",
                            "megatron-deepspeed-2022-03", "nanotron-2024-12"}) {
    out.push_back(run_of(stack, 32, tp));
    out.push_back(run_of(stack, 32, pipe));
    out.push_back(run_of(stack, 32, "dp_shard: 1, dp_replicate: -1, tp: 2, zero_stage: 0",
                         "recompute: full"));
    out.push_back(run_of(stack, 8, "dp_shard: 1, dp_replicate: -1, zero_stage: 1",
                         "recompute: selective-attention"));
  }
  for (const char* stack : {"torchtitan-2024-12", "composer-2023-10", "torch-fsdp1-2023-06",
                            "torch-fsdp2-2025-03", "deepspeed-2024-01", "generic"}) {
    out.push_back(run_of(stack, 32, "dp_shard: -1", "recompute: full"));
    out.push_back(run_of(stack, 32, "dp_shard: 8, dp_replicate: -1"));
    out.push_back(run_of(stack, 32, "dp_shard: 1, dp_replicate: -1"));
    out.push_back(run_of(stack, 32, "dp_shard: -1, zero_stage: 2"));
  }
  for (const char* kind : {"allgather", "ring", "ulysses"}) {
    out.push_back(
        run_of("torchtitan-2024-12", 32, "dp_shard: -1, cp: 4, cp_kind: " + std::string(kind)));
    out.push_back(run_of("nemo-2025-06", 32, pipe + ", cp: 2, cp_kind: " + std::string(kind)));
  }
  for (const char* precision :
       {"fp8-tensorwise", "fp8-delayed", "fp8-blockwise", "mxfp8", "nvfp4", "bf16", "fp16"}) {
    out.push_back(run_of("nemo-2025-06", 16, "dp_shard: 1, dp_replicate: -1, tp: 2",
                         "recompute: none", "precision: " + std::string(precision), "dgx-b200"));
  }
  for (const char* optimizer : {"adamw", "sgd", "adafactor", "adamw-8bit"}) {
    out.push_back(run_of("torchtitan-2024-12", 8, "dp_shard: -1", "recompute: none",
                         "optimizer: " + std::string(optimizer)));
  }
  out.push_back(run_of("torchtitan-2024-12", 8, "dp_shard: -1", "recompute: none",
                       "master_dtype: bf16, grad_dtype: bf16, moment_dtype: bf16"));
  return out;
}

/// A job with the profile of its GPU.
struct StackRun {
  explicit StackRun(const std::string& yaml)
      : job(job_of(yaml)), profile(load_profile(source_data(), job.scenario.cluster.gpu.name)) {}
  Job job;
  Profile profile;
};

}  // namespace forerun::test

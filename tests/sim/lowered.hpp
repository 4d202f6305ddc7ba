#pragma once

// Real programs: Llama-3.1-8B on 32 GPUs, without a pipeline and with an interleaved one.

#include <string>

#include "model/forecaster.hpp"
#include "tests/support/plans.hpp"

namespace forerun::test {

inline const std::string kOneStage =
    "cluster: {name: grand-teton-h100-95gb, gpus: 32}\n"
    "model: llama3-8b\n"
    "training: {sequence_length: 8192, micro_batch: 1, global_batch: 64}\n"
    "execution: {compile: true, recompute: selective-op}\n"
    "software: torchtitan-2024-12\n";
/// 4 ranks of 2 stages, 8 microbatches.
inline const std::string kInterleaved =
    kOneStage +
    "parallelism: {dp_shard: 8, pp: 4, virtual_stages: 2, schedule: interleaved-1f1b}\n";

/// A plan's forecaster and program.
struct Lowered {
  explicit Lowered(const std::string& yaml)
      : job(job_of(yaml)),
        profile(load_profile(source_data(), job.scenario.cluster.gpu.name)),
        forecaster(job.scenario, profile),
        program(forecaster.program(job.plan)) {}

  Job job;
  Profile profile;
  Forecaster forecaster;
  const Program& program;
};

}  // namespace forerun::test

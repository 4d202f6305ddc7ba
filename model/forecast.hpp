#pragma once

// A forecast: the one struct that every output renders. Nothing is computed in a renderer.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/engine/rank_state.hpp"
#include "model/kernel.hpp"
#include "workloads/job.hpp"

namespace forerun {

/// A value with the bounds of its 90% interval.
struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// Memory of one pipeline rank, bytes.
struct RankMemory {
  double resident = 0;   ///< between steps
  double allocated = 0;  ///< peak of live tensors
  double reserved = 0;   ///< what the caching allocator holds at most
  double device = 0;     ///< with contexts and libraries
};

struct StageForecast {
  int stage = 0;
  int rank = 0;
  int layers = 0;
  double end_seconds = 0;  ///< its gradients are complete
};

/// The numbers that a sweep keeps of a plan.
struct Metrics {
  double step_seconds = 0;
  double tokens_per_second_gpu = 0;
  double model_flops_gpu = 0;  ///< FLOP/s a GPU, without recompute, causal attention halved
  double mfu = 0;              ///< of the dense peak of the compute dtype
  RankMemory memory;           ///< of the fullest rank
  int fullest_rank = 0;
  bool fits = false;
};

struct Forecast {
  Metrics metrics;
  Interval step_time, tokens_s_gpu, tflops_gpu, mfu, peak_mem, allocated;
  double p_fits = 0;
  double model_flops_full_gpu = 0;  ///< other convention: attention without causal halving
  double hardware_flops_gpu = 0;    ///< other convention: recomputed products counted
  Breakdown breakdown{};            ///< seconds by category; sums to the step
  Resident live_at_peak{};          ///< bytes by component on the fullest rank
  std::string peak_where;
  std::vector<RankMemory> ranks;
  std::vector<StageForecast> stages;
  std::vector<std::string> warnings;
  std::vector<Assumption> assumptions;
  std::string top_assumption;
  Job job;  ///< resolved input
  std::string profile_id, profile_date;
  std::string engine;             ///< "analytic" or "des"
  std::string event_fingerprint;  ///< where the event engine ran
};

}  // namespace forerun

#pragma once

// The discrete-event engine. It unrolls the program as the host would, keeps its own streams and
// queue, and lets operations start when everything they wait for has ended. It shares the program
// and its durations with the analytic engine, and neither its fold nor its recurrence.

#include <cstdint>
#include <vector>

#include "model/program.hpp"
#include "sim/trace.hpp"

namespace forerun {

struct SimResult {
  double step_seconds = 0;
  std::vector<double> rank_end;    ///< by pipeline rank
  std::vector<double> stage_end;   ///< by stage: its gradients are complete
  std::vector<MemoryFold> memory;  ///< by pipeline rank: what the step adds to its resident bytes
  std::uint64_t events = 0;
  std::uint64_t fingerprint = 0;  ///< of the stream of events
};

/// Simulates one step. `trace` may be null.
SimResult simulate(const Program& program, Trace* trace = nullptr);

}  // namespace forerun

#pragma once

// The analytic engine: the timeline of a program, folded. Blocks are run or applied as maps, chains
// fold repeated blocks, schedules fold repeated cycles; what does not repeat is run as it stands.

#include <memory>
#include <vector>

#include "model/engine/rank_state.hpp"
#include "model/program.hpp"

namespace forerun {

struct Timeline {
  double step_seconds = 0;
  std::vector<double> rank_end;   ///< by pipeline rank: its last operation
  std::vector<double> stage_end;  ///< by stage: its gradients are complete
  int last_rank = 0;              ///< the rank that ends last
  Breakdown breakdown{};          ///< of that rank; sums to step_seconds; only from explain()
};

class AnalyticEngine {
 public:
  /// Programs that are run must lie in `pool` and have these rates.
  AnalyticEngine(const ProgramPool& pool, const RateTable& rates);
  ~AnalyticEngine();

  void run(const Program& program, Timeline& out);
  /// Follows the critical path of every rank as well; slower.
  void explain(const Program& program, Timeline& out);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace forerun

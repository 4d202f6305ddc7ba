#include "model/cost/memory_bound.hpp"

namespace forerun {

Seconds memory_bound_time(KernelFamily family, double bytes, int launches,
                          const MemoryBoundCosts& costs, BytesPerSecond hbm) {
  const double fraction = costs.hbm_fraction[static_cast<std::size_t>(family)];
  return Seconds(costs.launch * launches + bytes / (fraction * hbm.value()));
}

}  // namespace forerun

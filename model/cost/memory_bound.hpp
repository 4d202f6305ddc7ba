#pragma once

// Time of kernels that move bytes:  t = launch + bytes / (fraction x HBM bandwidth), the fraction
// by kernel family and per pass over memory. Bytes are those that the kernel really reads and
// writes; what eager execution loses against compiled is mostly its extra passes.

#include <array>

#include "base/quantity.hpp"
#include "model/kernel.hpp"

namespace forerun {

struct MemoryBoundCosts {
  double launch = 0;  ///< s, a kernel
  std::array<double, kKernelFamilies> hbm_fraction{};
};

Seconds memory_bound_time(KernelFamily family, double bytes, int launches,
                          const MemoryBoundCosts& costs, BytesPerSecond hbm);

}  // namespace forerun

#pragma once

// How a software stack writes the modules of a transformer: which operators its model code
// launches.

#include <cstdint>

namespace forerun {

struct ModuleChoices {
  bool fused_norm = false;     ///< one norm kernel; else RMSNorm in fp32 from elementary operators
  bool fused_rotary = false;   ///< one rotary kernel; else complex arithmetic in fp32
  bool expand_kv = true;       ///< key/value heads are repeated to the number of query heads
  bool quantise_once = false;  ///< a tensor used by several fp8 linears is cast once
};

}  // namespace forerun

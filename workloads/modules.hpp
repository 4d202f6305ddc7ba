#pragma once

// How a software stack writes the modules of a transformer: which operators its model code
// launches.

#include <cstdint>

namespace forerun {

struct ModuleChoices {
  bool fused_norm = false;    ///< one norm kernel; else RMSNorm in fp32 from elementary operators
  bool fused_rotary = false;  ///< one rotary kernel; else complex arithmetic in fp32
  bool expand_kv = true;      ///< key/value heads are repeated to the number of query heads
  bool merged_projections = false;  ///< query, key and value in one product; gate and up in one
  bool head_copies = false;         ///< heads are copied to the attention kernel's memory layout
  bool fused_activation = false;    ///< one kernel for the activation and the gate's product
  bool fused_loss = false;          ///< cross-entropy in one kernel each pass
  bool fused_quantise = false;      ///< one kernel casts a tensor and its transpose (fp8); weights
                                    ///< are cast once a step
  bool quantise_once = false;       ///< a tensor used by several fp8 linears is cast once
};

}  // namespace forerun

#pragma once

// An accelerator as its datasheet and driver describe it; topology/catalog/gpus/*.yaml.

#include <string>

#include "base/dtype.hpp"
#include "base/quantity.hpp"
#include "topology/sourced.hpp"

namespace forerun {

struct GpuSpec {
  std::string name;
  std::string description;
  Sourced<Bytes> memory;  ///< what the driver shows a process, less than the label
  Sourced<BytesPerSecond> hbm_bandwidth;
  Sourced<std::int64_t> sms;
  Sourced<FlopsPerSecond> peak_bf16;   ///< dense
  Sourced<FlopsPerSecond> peak_fp16;   ///< dense; as bf16 where a file does not say
  Sourced<FlopsPerSecond> peak_fp8;    ///< dense; 0 where the part has none
  Sourced<FlopsPerSecond> peak_fp4;    ///< dense, block-scaled; 0 where the part has none
  Sourced<FlopsPerSecond> peak_tf32;   ///< dense; 0 where the part has none
  Sourced<FlopsPerSecond> peak_fp32;   ///< outside the tensor cores
  Sourced<BytesPerSecond> nvlink;      ///< one direction, all links of a GPU
  Sourced<double> power;               ///< W, the cap
  Sourced<double> boost_clock;         ///< Hz
  Sourced<BytesPerSecond> usual_nic;   ///< RDMA a GPU where a description does not say
  Sourced<std::string> usual_cluster;  ///< whose fabric is meant where only the GPU is named

  /// Dense matrix peak of a compute dtype; 0 where the part has none.
  [[nodiscard]] FlopsPerSecond peak(DType type) const {
    return type == DType::kFp8    ? peak_fp8.value
           : type == DType::kFp32 ? peak_fp32.value
           : type == DType::kFp16 ? peak_fp16.value
                                  : peak_bf16.value;
  }
};

/// Reads one catalogue file. Throws InputError.
GpuSpec read_gpu(const Node& root, const std::string& name);

}  // namespace forerun

#pragma once

// A calibration profile: the parameters of every cost formula for a family of GPUs, as data
// (calibration/profiles/*.yaml) with source, residual and range. The model evaluates parameters and
// does not know where they came from.

#include <array>
#include <string>
#include <vector>

#include "base/data_path.hpp"
#include "base/mapping_reader.hpp"
#include "model/cost/attention.hpp"
#include "model/cost/collective.hpp"
#include "model/cost/gemm.hpp"
#include "model/cost/memory_bound.hpp"
#include "model/cost/power.hpp"
#include "model/program.hpp"

namespace forerun {

inline constexpr std::size_t kAttentionFamilies = 5;
inline constexpr std::size_t kTransports = 3;

/// Slow-downs while kernels and collectives share a GPU.
struct InterferenceCosts {
  RateTable rates;                   ///< of kernels beside collectives
  double collective_node = 1;        ///< rate of a collective inside a node beside kernels
  double collective_net = 1;         ///< the same across nodes
  double product_beside_copies = 1;  ///< rate of a product beside copies by copy engines
};

struct Profile {
  std::string id;
  std::string date;
  std::string description;
  std::vector<std::string> gpus;     ///< names it was made for
  std::vector<std::string> sources;  ///< one line a table it was made from
  GemmCosts gemm_bf16, gemm_fp8;     ///< fp8: peak_fraction 0 where there is none
  GemmCosts gemm_fp16, gemm_fp32;    ///< as bf16 where a file does not say
  GemmCosts gemm_mxfp8;              ///< as fp8 where a file does not say
  GemmCosts gemm_fp4;                ///< block-scaled; peak_fraction 0 where there is none
  std::array<AttentionCosts, kAttentionFamilies> attention;  ///< by AttentionKernel
  MemoryBoundCosts memory_bound;
  PowerCosts power;
  InterferenceCosts interference;
  CollectiveCosts collectives;                         ///< its transport is set by the cluster's
  std::array<TransportCosts, kTransports> transports;  ///< by Transport

  [[nodiscard]] const GemmCosts& gemm(DType type) const {
    return type == DType::kFp8    ? gemm_fp8
           : type == DType::kFp16 ? gemm_fp16
           : type == DType::kFp32 ? gemm_fp32
                                  : gemm_bf16;
  }
};

/// Reads one profile. Throws InputError.
Profile read_profile(const Node& root, const std::string& id);

/// The profile made for a GPU. Throws Unsupported where there is none.
Profile load_profile(const DataPath& data, const std::string& gpu);

inline constexpr const char* kProfileFolder = "calibration/profiles";

}  // namespace forerun

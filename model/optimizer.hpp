#pragma once

// What an optimizer keeps for a parameter and moves in a step, and in which types.

#include <cstdint>

#include "workloads/plan.hpp"

namespace forerun {

struct OptimizerStates {
  OptimizerKind kind = OptimizerKind::kAdamW;
  DType parameter = DType::kBf16;  ///< as the products read it
  DType master = DType::kFp32;
  DType gradient = DType::kFp32;
  DType moment = DType::kFp32;
  bool operator==(const OptimizerStates&) const = default;

  /// A second copy of the parameters in a wider type is kept.
  [[nodiscard]] bool separate_master() const { return master != parameter; }
};

OptimizerStates states_of(const Plan& plan);

/// Bytes a parameter that the optimizer keeps beside parameters and gradients: moments with their
/// scales. Adafactor's factored second moment is a row and a column of each matrix: nothing here.
double moment_bytes(const OptimizerStates& states);

/// Bytes a parameter that one fused pass over the states reads and writes: gradient, master copy
/// and moments, and the parameter once more where it is a copy.
double fused_step_bytes(const OptimizerStates& states);

/// The same where every operator is a kernel of its own (foreach), and how many there are.
double foreach_step_bytes(const OptimizerStates& states);
int foreach_kernels(const OptimizerStates& states);

}  // namespace forerun

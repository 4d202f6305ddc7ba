#include "model/optimizer.hpp"

#include "base/contract.hpp"

namespace forerun {
namespace {

/// Blocks of 256 values share a scale of fp32 (bitsandbytes, torchao).
constexpr double kScaleBytes = 4.0 / 256;

int moments(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdamW:
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW8bit:
      return 2;
    case OptimizerKind::kMuon:
      return 1;
    case OptimizerKind::kSgd:
    case OptimizerKind::kAdafactor:
      return 0;
  }
  throw Bug("no such optimizer");
}

/// Operators of a foreach step, each reading and writing the states it touches. Adam: mul, lerp,
/// mul, addcmul, sqrt, div, add, addcdiv over 20 passes of one state each.
struct Foreach {
  int kernels;
  int passes;
};
Foreach foreach_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return {1, 3};
    case OptimizerKind::kAdafactor:  // square, two means, outer product, rsqrt, mul, clip, add
      return {8, 16};
    default:
      return {8, 20};
  }
}

}  // namespace

OptimizerStates states_of(const Plan& plan) {
  OptimizerStates out;
  out.kind = plan.optimizer;
  out.parameter = plan.precision == Precision::kFp32   ? DType::kFp32
                  : plan.precision == Precision::kFp16 ? DType::kFp16
                                                       : DType::kBf16;
  out.master = plan.master_dtype;
  out.gradient = plan.grad_dtype;
  out.moment = plan.moment_dtype;
  return out;
}

double moment_bytes(const OptimizerStates& s) {
  if (s.kind == OptimizerKind::kAdamW8bit) return 2 * (1 + kScaleBytes);
  return moments(s.kind) * size_of(s.moment);
}

double fused_step_bytes(const OptimizerStates& s) {
  return size_of(s.gradient) + 2 * size_of(s.master) + 2 * moment_bytes(s) +
         (s.separate_master() ? size_of(s.parameter) : 0);
}

double foreach_step_bytes(const OptimizerStates& s) {
  return foreach_of(s.kind).passes * static_cast<double>(size_of(s.moment));
}

int foreach_kernels(const OptimizerStates& s) {
  return foreach_of(s.kind).kernels;
}

}  // namespace forerun

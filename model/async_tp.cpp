#include "model/async_tp.hpp"

#include <algorithm>

namespace forerun {
namespace {

bool reads(const Kernel& kernel, std::size_t producer) {
  return std::find(kernel.after.begin(), kernel.after.end(), static_cast<std::int16_t>(producer)) !=
         kernel.after.end();
}

/// A product whose rows are the gathered tokens.
bool is_row_product(const Kernel& kernel) {
  return kernel.family == KernelFamily::kGemm && kernel.gemm.groups == 1 &&
         kernel.gemm.layout != GemmLayout::kWgrad;
}

void overlap_gather(std::vector<Kernel>& kernels, std::size_t gather, int tp) {
  for (std::size_t i = gather + 1; i < kernels.size(); ++i) {
    if (!is_row_product(kernels[i]) || !reads(kernels[i], gather)) continue;
    kernels[i].overlap_chunks = tp;
    kernels[gather].overlapped_with = static_cast<int>(i);
  }
}

void overlap_scatter(std::vector<Kernel>& kernels, std::size_t scatter, int tp) {
  const Kernel& kernel = kernels[scatter];
  if (kernel.after.size() != 1) return;
  const auto producer = static_cast<std::size_t>(kernel.after[0]);
  if (!is_row_product(kernels[producer])) return;
  kernels[producer].overlap_chunks = tp;
  kernels[scatter].overlapped_with = static_cast<int>(producer);
}

}  // namespace

void overlap_tensor_parallel(std::vector<Kernel>& kernels, int tp) {
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Kernel& kernel = kernels[i];
    if (!kernel.is_collective() || kernel.comm.dim != MeshDim::kTensor) continue;
    if (kernel.comm.collective == CollectiveKind::kAllGather) overlap_gather(kernels, i, tp);
    if (kernel.comm.collective == CollectiveKind::kReduceScatter) overlap_scatter(kernels, i, tp);
  }
}

void overlap_ring(std::vector<Kernel>& kernels) {
  int attention = -1;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const bool forward = kernels[i].family == KernelFamily::kAttentionForward;
    const bool backward = kernels[i].family == KernelFamily::kAttentionBackward;
    if (backward || (forward && attention < 0)) attention = static_cast<int>(i);
  }
  for (Kernel& kernel : kernels) {
    const bool context = kernel.is_collective() && kernel.comm.dim == MeshDim::kContext;
    if (context) kernel.overlapped_with = attention;
  }
}

}  // namespace forerun

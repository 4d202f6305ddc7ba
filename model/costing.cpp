#include "model/costing.hpp"

#include <algorithm>

namespace forerun {
namespace {

class PassCosting {
 public:
  PassCosting(const std::vector<Kernel>& kernels, bool compiled, bool backward,
              const CostingContext& context)
      : kernels_(kernels), compiled_(compiled), backward_(backward), context_(context) {}

  CostedPass run() {
    if (compiled_) pass_.host_seconds += context_.host->compiled_region;
    for (const Kernel& kernel : kernels_)
      add(kernel);
    return std::move(pass_);
  }

 private:
  void add(const Kernel& kernel) {
    Operation op;
    op.name = kernel.name;
    op.family = kernel.family;
    op.category = kernel.category;
    op.collective = kernel.comm.collective;
    op.after.assign(kernel.after.begin(), kernel.after.end());
    op.stream = static_cast<std::int8_t>(slot_of(stream(kernel)));
    op.seconds = kernel.is_collective()
                     ? collective(kernel)
                     : context_.costs->kernel(kernel, context_.attention, context_.precision);
    pass_.host_seconds += host(kernel);
    if (kernel.host_waits) {  // the device idles until the host has seen the result and goes on
      op.seconds += context_.host->token_counts;
      pass_.host_seconds += context_.host->token_counts;
    }
    op.issued_at = pass_.host_seconds;
    pass_.operations.push_back(op);
    events(kernel.memory.allocated, 1, kernel.memory.held_allocating);
    events(kernel.memory.freed, -1, kernel.memory.held_freeing);
  }

  template <class Deltas>
  void events(const Deltas& deltas, std::int64_t sign, std::int64_t held) {
    for (const MemoryDelta& d : deltas) {
      pass_.events.push_back({MemoryPool::kCompute, d.component, sign * d.bytes, held});
      held = 0;
    }
    if (held != 0) pass_.events.push_back({MemoryPool::kCompute, {}, 0, held});
  }

  /// Expert and context parallelism share a stream: both stand in one chain of dependencies.
  [[nodiscard]] static Stream stream(const Kernel& kernel) {
    if (!kernel.is_collective()) return Stream::kCompute;
    return kernel.comm.dim == MeshDim::kTensor ? Stream::kTensor : Stream::kContext;
  }

  [[nodiscard]] double host(const Kernel& kernel) const {
    const HostCosts& h = *context_.host;
    if (kernel.is_collective()) return h.collective;
    if (compiled_) return h.compiled_kernel * kernel.repeat;
    const bool autograd = backward_ && !kernel.recompute;
    return (autograd ? h.eager_backward : h.eager_forward) * kernel.repeat;
  }

  [[nodiscard]] double collective(const Kernel& kernel) const {
    const Span& span = kernel.comm.dim == MeshDim::kTensor    ? context_.tp
                       : kernel.comm.dim == MeshDim::kContext ? context_.cp
                                                              : context_.expert;
    const auto bytes = static_cast<double>(kernel.comm.bytes);
    if (kernel.overlapped_with < 0) {
      return context_.costs->collective(kernel.comm.collective, bytes, span);
    }
    if (kernel.comm.dim == MeshDim::kContext) return ring(kernel, bytes, span);
    return overlapped(kernel, bytes, span);
  }

  /// A ring: in each of n - 1 steps a piece is sent beside the attention of another piece. The
  /// collectives that share the attention (keys, values, their gradients) share its time too.
  [[nodiscard]] double ring(const Kernel& kernel, double bytes, const Span& span) const {
    const auto n = static_cast<double>(span.ranks);
    const auto same = [&](const Kernel& other) {
      return other.is_collective() && other.comm.dim == MeshDim::kContext;
    };
    const auto sharing = static_cast<double>(std::count_if(kernels_.begin(), kernels_.end(), same));
    const Kernel& hides = kernels_[static_cast<std::size_t>(kernel.overlapped_with)];
    const double attention =
        context_.costs->kernel(hides, context_.attention, context_.precision) / n / sharing;
    const double piece = context_.costs->send(bytes / n, span.tier);
    return (n - 1) * std::max(0.0, piece - attention);
  }

  /// Async TP: pieces are copied between neighbours beside the pieces of the products; what a
  /// piece's copy takes longer than its product stays exposed, and each step has a barrier.
  [[nodiscard]] double overlapped(const Kernel& kernel, double bytes, const Span& span) const {
    const auto n = static_cast<double>(span.ranks);
    const Costs& costs = *context_.costs;
    const double copy = costs.send(bytes / n, span.tier);
    double product = 0;
    const auto self = static_cast<std::int16_t>(&kernel - kernels_.data());
    const bool gather = kernel.comm.collective == CollectiveKind::kAllGather;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const Kernel& other = kernels_[i];
      const auto& waits = other.after;
      const bool pair = gather ? std::find(waits.begin(), waits.end(), self) != waits.end()
                               : static_cast<int>(i) == kernel.overlapped_with;
      if (!pair || other.overlap_chunks == 1) continue;
      product += costs.kernel(other, context_.attention, context_.precision) / other.overlap_chunks;
    }
    const double exposed = (n - 1) * std::max(0.0, copy - product);
    const double barrier = costs.send(1, span.tier);
    // A scatter ends with one kernel that sums the pieces.
    const double sum = gather ? 0 : costs.memory_bound(KernelFamily::kFused, bytes * (1 + 1 / n));
    return exposed + barrier + sum;
  }

  const std::vector<Kernel>& kernels_;
  bool compiled_;
  bool backward_;
  const CostingContext& context_;
  CostedPass pass_;
};

}  // namespace

CostedBlock cost_block(BlockKind kind, const BlockKernels& kernels, const CostingContext& context) {
  CostedBlock block;
  block.kind = kind;
  block.kernels = &kernels;
  block.forward = PassCosting(kernels.forward, kernels.compiled, false, context).run();
  block.backward = PassCosting(kernels.backward, kernels.compiled, true, context).run();
  return block;
}

}  // namespace forerun

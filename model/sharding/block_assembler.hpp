#pragma once

// Puts a block of a program together: operations of a strategy's own around costed passes, with the
// host's launches and the allocator's events in order.

#include <string_view>
#include <utility>

#include "model/costing.hpp"
#include "model/program.hpp"

namespace forerun {

class BlockAssembler {
 public:
  /// Begins a block in `draft`, whose storage is used again.
  BlockAssembler(BlockDraft& draft, std::string_view name) : block_(draft) {
    block_.name = name;
    block_.operations.clear();
    block_.host_seconds = 0;
    block_.events.clear();
  }

  /// The host works without launching anything.
  void host(double seconds) { block_.host_seconds += seconds; }

  /// Appends an operation that the host launches now, `launch` seconds of its time.
  std::int16_t add(Operation op, double launch = 0) {
    block_.host_seconds += launch;
    op.issued_at = block_.host_seconds;
    block_.operations.push_back(std::move(op));
    return last();
  }

  /// Appends the operations of a pass.
  void add(const CostedPass& pass) {
    const auto shift = static_cast<std::int16_t>(block_.operations.size());
    for (Operation op : pass.operations) {
      for (std::int16_t& after : op.after)
        after = static_cast<std::int16_t>(after + shift);
      op.issued_at += block_.host_seconds;
      block_.operations.push_back(std::move(op));
    }
    block_.host_seconds += pass.host_seconds;
    block_.events.insert(block_.events.end(), pass.events.begin(), pass.events.end());
  }

  void memory(MemoryPool pool, MemoryComponent component, std::int64_t bytes) {
    if (bytes != 0) block_.events.push_back({pool, component, bytes, bytes});
  }

  [[nodiscard]] std::int16_t last() const {
    return static_cast<std::int16_t>(block_.operations.size() - 1);
  }
  [[nodiscard]] Operation& operation(std::int16_t index) {
    return block_.operations[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] double host_so_far() const { return block_.host_seconds; }

  [[nodiscard]] const BlockDraft& block() const { return block_; }

 private:
  BlockDraft& block_;
};

}  // namespace forerun

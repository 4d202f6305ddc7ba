#include "sim/event_queue.hpp"

#include <bit>

namespace forerun {

void EventQueue::mix(const SimEvent& event) {
  const auto add = [this](std::uint64_t word) {
    for (int byte = 0; byte < 8; ++byte) {
      fingerprint_ ^= word >> (8 * byte) & 0xFFU;
      fingerprint_ *= 1099511628211ULL;
    }
  };
  add(std::bit_cast<std::uint64_t>(event.time));
  add(static_cast<std::uint64_t>(event.rank) << 32 | static_cast<std::uint64_t>(event.priority));
  add(static_cast<std::uint64_t>(event.subject));
}

}  // namespace forerun

#pragma once

// The clock and queue of one simulation. Events are totally ordered by (time, priority, sequence),
// so the same input gives the same order, and a fingerprint of the order, on any machine.

#include <cstdint>
#include <queue>
#include <vector>

namespace forerun {

/// At one moment: what ended makes way before anything new is issued.
enum class EventPriority : std::uint8_t { kEnd, kMessage, kIssue };

struct SimEvent {
  double time = 0;
  EventPriority priority = EventPriority::kEnd;
  std::uint64_t sequence = 0;
  std::int32_t rank = 0;
  std::int64_t subject = 0;    ///< operation instance
  std::uint32_t revision = 0;  ///< an end that was rescheduled has a newer one
};

class EventQueue {
 public:
  void push(SimEvent event) {
    event.sequence = next_sequence_++;
    queue_.push(event);
  }
  [[nodiscard]] bool empty() const { return queue_.empty(); }

  SimEvent pop() {
    SimEvent event = queue_.top();
    queue_.pop();
    now_ = event.time;
    ++count_;
    return event;
  }

  /// Mixes an event that took effect into the fingerprint (FNV-1a).
  void mix(const SimEvent& event);

  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  struct Later {
    bool operator()(const SimEvent& a, const SimEvent& b) const {
      if (a.time != b.time) return a.time > b.time;
      if (a.priority != b.priority) return a.priority > b.priority;
      return a.sequence > b.sequence;
    }
  };

  std::priority_queue<SimEvent, std::vector<SimEvent>, Later> queue_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t fingerprint_ = 1469598103934665603ULL;
  double now_ = 0;
};

}  // namespace forerun

#pragma once

// The actions of all ranks of a pipeline in an order in which one thread can run them: every
// message is sent before it is received. Worked out once per schedule; durations do not matter,
// since an action waits for messages and never for a clock.

#include <cstdint>
#include <vector>

#include "model/schedules/schedule.hpp"

namespace forerun {

struct TapeStep {
  std::int16_t rank = 0;
  std::int16_t stage = 0;
  ActionKind kind = ActionKind::kForward;
  std::int16_t receives = -1;  ///< mailbox, -1: none
  std::int16_t sends = -1;
};

/// Where every rank has completed as many repetitions of its cycle.
struct TapeMark {
  std::size_t step = 0;  ///< steps before it
  int pattern = 0;       ///< marks of one pattern have each rank at the same place of its cycle and
                         ///< as many messages under way
};

struct Tape {
  std::vector<TapeStep> steps;
  std::vector<TapeMark> marks;  ///< after each repetition
  std::size_t barrier = 0;      ///< steps before the first optimizer
  std::int64_t repeats = 0;     ///< of the cycle
  int mailboxes = 0;
  int capacity = 1;  ///< messages that a mailbox holds at most; a power of two
};

/// The order for a schedule whose cycle repeats `repeats` times. Throws Bug where ranks wait for
/// each other for ever.
Tape make_tape(const PipelineSchedule& schedule, std::int64_t repeats);

}  // namespace forerun

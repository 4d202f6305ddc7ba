#include <array>

#include "model/schedules/generators.hpp"

namespace forerun {

/// Every schedule that can be run. A new one is a file beside this and a line here.
const ScheduleGenerator* find_schedule(ScheduleKind kind) {
  static const std::array<const ScheduleGenerator*, 3> table{&gpipe(), &one_f_one_b(),
                                                             &interleaved()};
  for (const ScheduleGenerator* generator : table) {
    if (generator->kind() == kind) return generator;
  }
  return nullptr;
}

}  // namespace forerun

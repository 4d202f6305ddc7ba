#pragma once

// The generators, one a file; register.cpp is the table.

#include "model/schedules/schedule.hpp"

namespace forerun {

const ScheduleGenerator& gpipe();
const ScheduleGenerator& one_f_one_b();
const ScheduleGenerator& interleaved();

}  // namespace forerun

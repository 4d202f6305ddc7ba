#pragma once

// The timeline of a simulated step for a viewer (Perfetto, chrome://tracing): one process a
// pipeline rank, one thread a stream, named by stage and stream.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace forerun {

struct TraceSpan {
  std::int32_t rank = 0;
  std::int8_t stream = 0;
  std::string_view name;
  std::string_view category;
  double begin = 0;  ///< seconds
  double end = 0;
};

struct Trace {
  int ranks = 1;
  int virtual_stages = 1;
  std::vector<TraceSpan> spans;
};

/// The trace as JSON in Chrome's trace event format, times in microseconds.
std::string to_chrome_json(const Trace& trace);

}  // namespace forerun

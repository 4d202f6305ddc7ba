#include "sim/trace.hpp"

#include <fmt/format.h>

#include <iterator>
#include <string>

#include "model/program.hpp"

namespace forerun {
namespace {

std::string process_name(const Trace& trace, int rank) {
  std::string name = fmt::format("rank {}: stage {}", rank, rank);
  for (int chunk = 1; chunk < trace.virtual_stages; ++chunk) {
    name += fmt::format(", {}", chunk * trace.ranks + rank);
  }
  return name;
}

void name_tracks(const Trace& trace, std::string& out) {
  for (int rank = 0; rank < trace.ranks; ++rank) {
    fmt::format_to(std::back_inserter(out),
                   R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}},)"
                   "\n",
                   rank, process_name(trace, rank));
    for (int stream = 0; stream < kStreams; ++stream) {
      fmt::format_to(
          std::back_inserter(out),
          R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"stage {} {}"}}}},)"
          "\n",
          rank, stream, rank, to_text(static_cast<Stream>(stream)));
    }
  }
}

}  // namespace

std::string to_chrome_json(const Trace& trace) {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  name_tracks(trace, out);
  for (const TraceSpan& span : trace.spans) {
    fmt::format_to(
        std::back_inserter(out),
        R"({{"ph":"X","pid":{},"tid":{},"name":"{}","cat":"{}","ts":{:.6f},"dur":{:.6f}}},)"
        "\n",
        span.rank, static_cast<int>(span.stream), span.name, span.category, span.begin * 1e6,
        (span.end - span.begin) * 1e6);
  }
  out.resize(out.size() - 2);  // the last comma
  return out + "\n]}\n";
}

}  // namespace forerun

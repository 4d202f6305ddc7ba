// The trace of a real program, read back as a viewer would.

#include "sim/trace.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "sim/engine.hpp"
#include "tests/sim/hand_program.hpp"
#include "tests/sim/lowered.hpp"

using namespace forerun;
using Json = nlohmann::json;

namespace {

constexpr double kRounding = 1.01e-6;  // microseconds: six digits are written

struct Slice {
  double begin, end;
  std::string name;
};
using Track = std::pair<int, int>;  // process and thread

struct Read {
  std::map<int, std::string> processes;
  std::map<Track, std::string> threads;
  std::map<Track, std::vector<Slice>> slices;

  explicit Read(const Trace& trace) {
    const Json document = Json::parse(to_chrome_json(trace));
    for (const Json& e : document.at("traceEvents")) {
      const int pid = e.at("pid");
      if (e.at("ph") == "X") {
        const double begin = e.at("ts"), duration = e.at("dur");
        REQUIRE(begin >= 0);
        REQUIRE(duration >= 0);
        slices[{pid, e.at("tid").get<int>()}].push_back({begin, begin + duration, e.at("name")});
      } else {
        REQUIRE(e.at("ph") == "M");
        const std::string name = e.at("args").at("name");
        if (e.at("name") == "process_name") {
          processes[pid] = name;
        } else {
          REQUIRE(e.at("name") == "thread_name");
          threads[{pid, e.at("tid").get<int>()}] = name;
        }
      }
    }
  }

  [[nodiscard]] double last_end() const {
    double last = 0;
    for (const auto& [track, all] : slices) {
      for (const Slice& s : all)
        last = std::max(last, s.end);
    }
    return last;
  }
};

struct Traced {
  Trace trace;
  SimResult result;

  explicit Traced(const Program& program) { result = simulate(program, &trace); }
};

void check_slices(const Read& read, const SimResult& result) {
  for (auto [track, slices] : read.slices) {
    CAPTURE(track.first);
    CAPTURE(track.second);
    REQUIRE(read.processes.count(track.first) == 1);
    REQUIRE(read.threads.count(track) == 1);
    std::sort(slices.begin(), slices.end(),
              [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
    int overlapping = 0;
    for (std::size_t i = 1; i < slices.size(); ++i) {
      overlapping += slices[i].begin < slices[i - 1].end - kRounding ? 1 : 0;
    }
    CHECK(overlapping == 0);
  }
  CHECK(read.last_end() == doctest::Approx(1e6 * result.step_seconds).epsilon(1e-9));
}

}  // namespace

TEST_CASE("the trace of one stage: its streams, nothing twice at a time, ends with the step") {
  const test::Lowered lowered(test::kOneStage);
  const Traced traced(lowered.program);
  const Read read(traced.trace);
  CHECK(read.processes == std::map<int, std::string>{{0, "rank 0: stage 0"}});
  CHECK(read.threads.at({0, slot_of(Stream::kCompute)}) == "stage 0 compute");
  CHECK(read.threads.at({0, slot_of(Stream::kHost)}) == "stage 0 host");
  CHECK(read.slices.count({0, slot_of(Stream::kFsdp)}) == 1);
  CHECK(read.slices.count({0, slot_of(Stream::kPipe)}) == 0);
  check_slices(read, traced.result);
}

TEST_CASE("the trace of an interleaved pipeline: a process a rank with all its stages") {
  const test::Lowered lowered(test::kInterleaved);
  const Traced traced(lowered.program);
  const Read read(traced.trace);
  CHECK(read.processes == std::map<int, std::string>{{0, "rank 0: stage 0, 4"},
                                                     {1, "rank 1: stage 1, 5"},
                                                     {2, "rank 2: stage 2, 6"},
                                                     {3, "rank 3: stage 3, 7"}});
  std::set<int> sending;
  for (const auto& [track, slices] : read.slices) {
    if (track.second == slot_of(Stream::kPipe)) sending.insert(track.first);
  }
  CHECK(sending == std::set<int>{0, 1, 2, 3});
  check_slices(read, traced.result);
}

TEST_CASE("every message of a pipeline is a slice") {
  const test::Lowered lowered(test::kInterleaved);
  const Read read(Traced(lowered.program).trace);
  std::size_t sends = 0;
  for (const auto& [track, slices] : read.slices) {
    if (track.second == slot_of(Stream::kPipe)) sends += slices.size();
  }
  // Each of 8 microbatches crosses the 7 borders of 8 stages forward and backward.
  CHECK(sends == 8 * 7 * 2);
}

TEST_CASE("slices lie where the operations ran") {
  const test::HandProgram p = test::two_stages();
  const Read read(Traced(p.program).trace);
  const std::vector<Slice>& compute = read.slices.at({0, slot_of(Stream::kCompute)});
  REQUIRE(compute.size() == 3);  // forward 0..2 s, backward 11..16, optimizer 16.5..17.5
  CHECK(compute[0].begin == 0);
  CHECK(compute[0].end == 2e6);
  CHECK(compute[1].begin == 11e6);
  CHECK(compute[1].end == 16e6);
  CHECK(compute[2].begin == 16.5e6);
  CHECK(compute[2].end == 17.5e6);
  const std::vector<Slice>& sent = read.slices.at({0, slot_of(Stream::kPipe)});
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].begin == 2e6);
  CHECK(sent[0].end == 3e6);
  CHECK(sent[0].name == "send");
}

TEST_CASE("tracing changes nothing") {
  const test::Lowered lowered(test::kInterleaved);
  const SimResult plain = simulate(lowered.program);
  const Traced traced(lowered.program);
  CHECK(traced.result.step_seconds == plain.step_seconds);
  CHECK(traced.result.fingerprint == plain.fingerprint);
}

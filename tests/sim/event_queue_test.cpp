#include "sim/event_queue.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace forerun;

namespace {

SimEvent event(double time, EventPriority priority, std::int64_t subject, std::int32_t rank = 0) {
  SimEvent e;
  e.time = time;
  e.priority = priority;
  e.subject = subject;
  e.rank = rank;
  return e;
}

std::vector<std::int64_t> drained(EventQueue& queue) {
  std::vector<std::int64_t> subjects;
  while (!queue.empty())
    subjects.push_back(queue.pop().subject);
  return subjects;
}

std::uint64_t fingerprint_of(const std::vector<SimEvent>& events) {
  EventQueue queue;
  for (const SimEvent& e : events)
    queue.mix(e);
  return queue.fingerprint();
}

}  // namespace

TEST_CASE("events come by time, then by priority, then in the order in which they were pushed") {
  EventQueue queue;
  queue.push(event(2, EventPriority::kEnd, 6));
  queue.push(event(1, EventPriority::kIssue, 4));
  queue.push(event(1, EventPriority::kIssue, 5));
  queue.push(event(1, EventPriority::kMessage, 3));
  queue.push(event(1, EventPriority::kEnd, 2));
  queue.push(event(0.5, EventPriority::kIssue, 1));
  CHECK(drained(queue) == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("the clock is the time of the event that came last") {
  EventQueue queue;
  CHECK(queue.now() == 0);
  queue.push(event(3, EventPriority::kEnd, 0));
  queue.push(event(1, EventPriority::kEnd, 1));
  CHECK(queue.now() == 0);
  queue.pop();
  CHECK(queue.now() == 1);
  queue.push(event(2, EventPriority::kEnd, 2));  // one more while others wait
  CHECK(queue.pop().subject == 2);
  CHECK(queue.now() == 2);
  queue.pop();
  CHECK(queue.now() == 3);
  CHECK(queue.count() == 3);
}

TEST_CASE("the fingerprint tells time, priority, rank, subject and order apart") {
  const SimEvent a = event(1, EventPriority::kEnd, 7, 2), b = event(1.5, EventPriority::kEnd, 8, 2);
  const std::uint64_t plain = fingerprint_of({a, b});
  CHECK(fingerprint_of({a, b}) == plain);
  CHECK(fingerprint_of({b, a}) != plain);
  CHECK(fingerprint_of({a}) != plain);
  CHECK(fingerprint_of({a, event(1.5 + 1e-15, EventPriority::kEnd, 8, 2)}) != plain);
  CHECK(fingerprint_of({a, event(1.5, EventPriority::kIssue, 8, 2)}) != plain);
  CHECK(fingerprint_of({a, event(1.5, EventPriority::kEnd, 9, 2)}) != plain);
  CHECK(fingerprint_of({a, event(1.5, EventPriority::kEnd, 8, 3)}) != plain);
}

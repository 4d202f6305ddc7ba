#include "model/engine/period.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace forerun;

namespace {

constexpr int kLead[] = {0};
constexpr auto kAny = [](int /*index*/, std::span<const double> /*shift*/) { return true; };
constexpr auto kNone = [](int /*index*/, std::span<const double> /*shift*/) { return false; };

/// The period found after each state in turn.
template <class MayLag = decltype(kAny)>
std::vector<int> found(const std::vector<std::vector<double>>& states,
                       std::span<const int> leads = kLead, int longest = PeriodFinder::kLongest,
                       MayLag may_lag = kAny) {
  PeriodFinder finder;
  std::vector<int> out;
  for (const std::vector<double>& times : states) {
    finder.push(times);
    out.push_back(finder.find(leads, may_lag, longest));
  }
  return out;
}

using Found = std::vector<int>;

}  // namespace

TEST_CASE("a state that only moves on has period one") {
  PeriodFinder finder;
  finder.push(std::vector<double>{10, 7});
  CHECK(finder.find(kLead, kAny) == 0);  // one state shows nothing
  finder.push(std::vector<double>{15, 12});
  CHECK(finder.find(kLead, kAny) == 1);
  CHECK(finder.shift() == std::vector<double>{5, 5});
}

TEST_CASE("a state that returns after two turns has period two") {
  // Offsets of the second time alternate between -3 and -1.
  CHECK(found({{0, -3}, {5, 4}, {8, 5}}) == Found{0, 0, 2});
}

TEST_CASE("periods up to four are looked for, and no longer ones") {
  // Offsets go round five values.
  const std::vector<double> offsets{-5, -2, -4, -1, -3};
  std::vector<std::vector<double>> states;
  for (int i = 0; i < 12; ++i) {
    const double lead = 10 * i;
    states.push_back({lead, lead + offsets[static_cast<std::size_t>(i % 5)]});
  }
  CHECK(found(states, kLead, PeriodFinder::kLongest, kNone) == Found(12, 0));
  std::vector<std::vector<double>> four;
  for (int i = 0; i < 6; ++i) {
    const double lead = 10 * i;
    four.push_back({lead, lead + offsets[static_cast<std::size_t>(i % 4)]});
  }
  CHECK(found(four) == Found{0, 0, 0, 0, 4, 4});
  CHECK(found(four, kLead, 2) == Found(6, 0));
}

TEST_CASE("a time that falls behind counts once it did so by as much twice") {
  // An idle stream stays at 3 while the lead goes on.
  CHECK(found({{10, 3}, {20, 3}}) == Found{0, 0});
  CHECK(found({{10, 3}, {20, 3}, {30, 3}}) == Found{0, 0, 1});
  CHECK(found({{10, 3}, {20, 4}, {30, 6}}) == Found{0, 0, 0});  // by different amounts
}

TEST_CASE("a time may fall behind only where the caller allows it") {
  const std::vector<std::vector<double>> idle{{10, 3}, {20, 3}, {30, 3}};
  CHECK(found(idle, kLead, 1, kNone) == Found{0, 0, 0});
  CHECK(found({{10, 3}, {20, 13}}, kLead, 1, kNone) == Found{0, 1});  // none falls behind
}

TEST_CASE("a time that gains on the lead is no period") {
  CHECK(found({{10, 3}, {20, 15}, {30, 27}, {40, 39}}) == Found{0, 0, 0, 0});
}

TEST_CASE("all leading times must advance alike") {
  constexpr int both[] = {0, 1};
  CHECK(found({{10, 3}, {20, 4}, {30, 5}}, both) == Found{0, 0, 0});
  CHECK(found({{10, 3}, {20, 13}}, both) == Found{0, 1});
}

TEST_CASE("states of different sizes show no period") {
  CHECK(found({{10, 3}, {20, 13, 14}, {30, 23}}) == Found{0, 0, 2});
  CHECK(found({{10, 3}, {20, 13, 14}}) == Found{0, 0});
}

TEST_CASE("rounding is forgiven and more is not") {
  CHECK(found({{10, 7}, {20, 17 + 1e-14}}) == Found{0, 1});
  CHECK(found({{10, 7}, {20, 17 + 1e-9}, {30, 27 + 3e-9}}) == Found{0, 0, 0});
}

TEST_CASE("what was seen before clearing does not count") {
  PeriodFinder finder;
  finder.push(std::vector<double>{10});
  finder.clear();
  finder.push(std::vector<double>{20});
  CHECK(finder.find(kLead, kAny) == 0);
}

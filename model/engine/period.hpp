#pragma once

// When a repeated piece of a timeline has become periodic, so that the rest is one multiplication.
//
// The state after each turn is a vector of times. Turns are time-invariant and monotone, so once
// the leading times (the compute streams) advance by the same shift each period and every other
// time advances by as much, the following periods do the same. A time that advances by less (an
// idle stream, a host that runs ahead) can decide nothing later if it decided nothing in two
// successive periods with equal shifts. Nothing is assumed: where no period shows, the caller goes
// on turn by turn.

#include <array>
#include <span>
#include <vector>

namespace forerun {

/// Rounding that times of this size may carry, some tens of units in the last place.
double rounding_of(double time);

class PeriodFinder {
 public:
  static constexpr int kLongest = 4;  ///< periods looked for, in turns

  void clear() { count_ = 0; }
  /// Notes the state after a turn.
  void push(std::span<const double> times);

  /// The shortest period that the last states show, 0 if none; `leads` are the indices that must
  /// advance alike. shift() is then the advance of each time in one period.
  int find(std::span<const int> leads, int longest = kLongest);
  [[nodiscard]] const std::vector<double>& shift() const { return shift_; }

 private:
  static constexpr int kHistory = 2 * kLongest + 1;
  [[nodiscard]] const std::vector<double>& back(int turns) const;
  bool shows(int period, std::span<const int> leads);

  std::array<std::vector<double>, kHistory> history_;
  int count_ = 0;
  std::vector<double> shift_;
};

}  // namespace forerun

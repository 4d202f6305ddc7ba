#pragma once

// When a repeated piece of a timeline has become periodic, so that the rest is one multiplication.
//
// The state after each turn is a vector of times. A turn is time-invariant and monotone, each time
// after it being a maximum over times before it plus constants. Once all times advance alike they
// do so for ever. A time that advances by less than the leading ones (an idle stream, a host that
// runs ahead) decides nothing later if it decided nothing in two successive periods with equal
// shifts, and goes on as it does if nothing that feeds it advances by more: the caller, who knows
// what feeds what, is asked. Nothing is assumed: where no period shows, the caller goes on turn by
// turn.

#include <algorithm>
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
  /// advance alike, and `may_lag` says of an index that advances by less, given all advances,
  /// whether it may. shift() is then the advance of each time in one period.
  template <class MayLag>
  int find(std::span<const int> leads, MayLag may_lag, int longest = kLongest) {
    for (int period = 1; period <= longest && period < count_; ++period) {
      if (!shows(period, leads)) continue;
      const auto allowed = [&](int i) { return may_lag(i, std::span<const double>(shift_)); };
      if (std::all_of(lagging_.begin(), lagging_.end(), allowed)) return period;
    }
    return 0;
  }
  [[nodiscard]] const std::vector<double>& shift() const { return shift_; }

 private:
  static constexpr int kHistory = 2 * kLongest + 1;
  [[nodiscard]] const std::vector<double>& back(int turns) const;
  bool shows(int period, std::span<const int> leads);
  [[nodiscard]] bool advanced_so_before(int period) const;

  std::array<std::vector<double>, kHistory> history_;
  int count_ = 0;
  std::vector<double> shift_;
  std::vector<int> lagging_;  // indices that advance by less
};

}  // namespace forerun

#include "model/engine/period.hpp"

#include <algorithm>
#include <cmath>

namespace forerun {

double rounding_of(double time) {
  return 2e-14 * std::abs(time) + 1e-18;
}

void PeriodFinder::push(std::span<const double> times) {
  history_[static_cast<std::size_t>(count_ % kHistory)].assign(times.begin(), times.end());
  ++count_;
}

const std::vector<double>& PeriodFinder::back(int turns) const {
  return history_[static_cast<std::size_t>((count_ - 1 - turns) % kHistory)];
}

bool PeriodFinder::shows(int period, std::span<const int> leads) {
  const std::vector<double>& now = back(0);
  const std::vector<double>& before = back(period);
  if (now.size() != before.size()) return false;
  const auto advance = [&](std::size_t i) { return now[i] - before[i]; };
  const double lead = advance(static_cast<std::size_t>(leads[0]));
  for (const int i : leads) {
    const auto at = static_cast<std::size_t>(i);
    if (std::abs(advance(at) - lead) > rounding_of(now[at])) return false;
  }
  bool all_alike = true;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (advance(i) > lead + rounding_of(now[i])) return false;
    all_alike &= std::abs(advance(i) - lead) <= rounding_of(now[i]);
  }
  if (!all_alike) {
    if (count_ <= 2 * period || back(2 * period).size() != now.size()) return false;
    const std::vector<double>& earlier = back(2 * period);
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (std::abs(advance(i) - (before[i] - earlier[i])) > rounding_of(now[i])) return false;
    }
  }
  shift_.resize(now.size());
  for (std::size_t i = 0; i < now.size(); ++i)
    shift_[i] = advance(i);
  return true;
}

int PeriodFinder::find(std::span<const int> leads, int longest) {
  for (int period = 1; period <= longest && period < count_; ++period) {
    if (shows(period, leads)) return period;
  }
  return 0;
}

}  // namespace forerun

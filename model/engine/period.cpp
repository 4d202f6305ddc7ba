#include "model/engine/period.hpp"

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
  shift_.resize(now.size());
  for (std::size_t i = 0; i < now.size(); ++i)
    shift_[i] = now[i] - before[i];
  const double lead = shift_[static_cast<std::size_t>(leads[0])];
  for (const int i : leads) {
    const auto at = static_cast<std::size_t>(i);
    if (std::abs(shift_[at] - lead) > rounding_of(now[at])) return false;
  }
  lagging_.clear();
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (shift_[i] > lead + rounding_of(now[i])) return false;
    if (shift_[i] < lead - rounding_of(now[i])) lagging_.push_back(static_cast<int>(i));
  }
  return lagging_.empty() || advanced_so_before(period);
}

bool PeriodFinder::advanced_so_before(int period) const {
  if (count_ <= 2 * period || back(2 * period).size() != shift_.size()) return false;
  const std::vector<double>& before = back(period);
  const std::vector<double>& earlier = back(2 * period);
  for (std::size_t i = 0; i < shift_.size(); ++i) {
    if (std::abs(shift_[i] - (before[i] - earlier[i])) > rounding_of(back(0)[i])) return false;
  }
  return true;
}

}  // namespace forerun

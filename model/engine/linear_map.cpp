#include "model/engine/linear_map.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace forerun {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr auto kN = static_cast<std::size_t>(kSlots);

/// A time as the maximum over slots of (slot before + weight).
using Row = std::array<double, kN>;

void raise(Row& row, const Row& by, double weight) {
  for (std::size_t j = 0; j < kN; ++j)
    row[j] = std::max(row[j], by[j] + weight);
}

}  // namespace

LinearMap::LinearMap() {
  for (std::size_t j = 0; j < kN; ++j) {
    columns_[j].fill(kNever);
    columns_[j][j] = 0;
  }
}

LinearMap LinearMap::of(const Block& block) {
  std::array<Row, kN> slots;
  for (std::size_t i = 0; i < kN; ++i) {
    slots[i].fill(kNever);
    slots[i][i] = 0;
  }
  const std::size_t host = static_cast<std::size_t>(slot_of(Stream::kHost));
  const Row host_before = slots[host];
  std::vector<Row> ends(block.operations.size());
  for (std::size_t k = 0; k < ends.size(); ++k) {
    const Operation& op = block.operations[k];
    Row& end = ends[k];
    end.fill(kNever);
    const bool marker = op.stream == kNoSlot;
    raise(end, host_before, op.issued_at);
    if (!marker) raise(end, slots[static_cast<std::size_t>(op.stream)], 0);
    for (const std::int16_t a : op.after)
      raise(end, ends[static_cast<std::size_t>(a)], 0);
    for (const std::int8_t w : op.waits)
      raise(end, slots[static_cast<std::size_t>(w)], 0);
    for (double& weight : end)
      weight += op.seconds;
    if (!marker) slots[static_cast<std::size_t>(op.stream)] = end;
    if (op.records != kNoSlot) slots[static_cast<std::size_t>(op.records)] = end;
  }
  for (double& weight : slots[host])
    weight += block.host_seconds;
  LinearMap map;
  map.change(host);
  for (const Operation& op : block.operations) {
    if (op.stream != kNoSlot) map.change(static_cast<std::size_t>(op.stream));
    if (op.records != kNoSlot) map.change(static_cast<std::size_t>(op.records));
    for (const std::int8_t w : op.waits)
      map.change(static_cast<std::size_t>(w));
  }
  for (std::size_t j = 0; j < kN; ++j) {
    for (std::size_t i = 0; i < kN; ++i)
      map.columns_[j][i] = slots[i][j];
  }
  return map;
}

void LinearMap::change(std::size_t slot) {
  const auto end = changing_.begin() + changes_;
  if (std::find(changing_.begin(), end, slot) == end) {
    changing_[changes_++] = static_cast<std::uint8_t>(slot);
  }
}

LinearMap::Times LinearMap::operator()(const Times& before) const {
  Times after = before;
  for (std::size_t i = 0; i < changes_; ++i) {
    const std::size_t to = changing_[i];
    double latest = kNever;
    for (std::size_t k = 0; k < changes_; ++k) {
      const std::size_t from = changing_[k];
      latest = std::max(latest, columns_[from][to] + before[from]);
    }
    after[to] = latest;
  }
  return after;
}

LinearMap LinearMap::then(const LinearMap& next) const {
  LinearMap out = *this;
  for (std::size_t j = 0; j < kN; ++j) {
    Column& column = out.columns_[j];
    for (std::size_t n = 0; n < next.changes_; ++n)
      column[next.changing_[n]] = kNever;
    for (std::size_t n = 0; n < next.changes_; ++n) {
      const std::size_t k = next.changing_[n];
      const double x = columns_[j][k];
      if (x == kNever) continue;
      for (std::size_t i = 0; i < kPadded; ++i) {
        column[i] = std::max(column[i], next.columns_[k][i] + x);
      }
    }
  }
  for (std::size_t n = 0; n < next.changes_; ++n)
    out.change(next.changing_[n]);
  return out;
}

LinearMap LinearMap::repeated(std::int64_t times) const {
  LinearMap result, power = *this;
  while (times > 0) {
    if ((times & 1) != 0) result = result.then(power);
    times >>= 1;
    if (times > 0) power = power.then(power);
  }
  return result;
}

}  // namespace forerun

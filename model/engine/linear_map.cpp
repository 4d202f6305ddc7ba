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
  for (std::size_t j = 0; j < kN; ++j) row[j] = std::max(row[j], by[j] + weight);
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
    for (const std::int16_t a : op.after) raise(end, ends[static_cast<std::size_t>(a)], 0);
    for (const std::int8_t w : op.waits) raise(end, slots[static_cast<std::size_t>(w)], 0);
    for (double& weight : end) weight += op.seconds;
    if (!marker) slots[static_cast<std::size_t>(op.stream)] = end;
    if (op.records != kNoSlot) slots[static_cast<std::size_t>(op.records)] = end;
  }
  for (double& weight : slots[host]) weight += block.host_seconds;
  LinearMap map;
  for (std::size_t j = 0; j < kN; ++j) {
    for (std::size_t i = 0; i < kN; ++i) map.columns_[j][i] = slots[i][j];
  }
  return map;
}

LinearMap::Times LinearMap::operator()(const Times& before) const {
  alignas(32) Column after;
  after.fill(kNever);
  for (std::size_t j = 0; j < kN; ++j) {
    const double x = before[j];
    const Column& column = columns_[j];
    for (std::size_t i = 0; i < kPadded; ++i) after[i] = std::max(after[i], column[i] + x);
  }
  Times out;
  std::copy_n(after.begin(), kN, out.begin());
  return out;
}

LinearMap LinearMap::then(const LinearMap& next) const {
  LinearMap out;
  for (std::size_t j = 0; j < kN; ++j) {
    Column& column = out.columns_[j];
    column.fill(kNever);
    for (std::size_t k = 0; k < kN; ++k) {
      const double x = columns_[j][k];
      for (std::size_t i = 0; i < kPadded; ++i) {
        column[i] = std::max(column[i], next.columns_[k][i] + x);
      }
    }
  }
  return out;
}

LinearMap LinearMap::repeated(std::int64_t times) const {
  LinearMap result, power = *this;
  for (; times > 0; times >>= 1) {
    if ((times & 1) != 0) result = result.then(power);
    power = power.then(power);
  }
  return result;
}

}  // namespace forerun

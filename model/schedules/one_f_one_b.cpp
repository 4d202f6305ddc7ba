// 1F1B (PipeDream-flush; Narayanan et al., SC21): after as many forwards as there are stages below
// it, a rank alternates one forward and one backward. At most ranks - rank microbatches in flight.

#include <algorithm>

#include "model/schedules/generators.hpp"

namespace forerun {
namespace {

class OneFOneB : public ScheduleGenerator {
 public:
  [[nodiscard]] ScheduleKind kind() const override { return ScheduleKind::k1F1B; }

  [[nodiscard]] std::string refusal(const ScheduleRequest& request) const override {
    return request.virtual_stages == 1 ? "" : "1f1b runs one virtual stage a rank";
  }

  [[nodiscard]] RankOrder order(const ScheduleRequest& request, int rank) const override {
    const std::int64_t m = request.microbatches;
    const std::int64_t warmup = std::min<std::int64_t>(m, request.ranks - rank - 1);
    RankOrder order;
    for (std::int64_t i = 0; i < warmup; ++i)
      order.push_back({ActionKind::kForward, 0, i});
    for (std::int64_t i = warmup; i < m; ++i) {
      order.push_back({ActionKind::kForward, 0, i});
      order.push_back({ActionKind::kBackward, 0, i - warmup});
    }
    for (std::int64_t i = m - warmup; i < m; ++i)
      order.push_back({ActionKind::kBackward, 0, i});
    return order;
  }

  [[nodiscard]] std::int64_t stride(const ScheduleRequest&) const override { return 1; }
};

}  // namespace

const ScheduleGenerator& one_f_one_b() {
  static const OneFOneB generator;
  return generator;
}

}  // namespace forerun

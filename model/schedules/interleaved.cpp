// Interleaved 1F1B (Narayanan et al., SC21) in PyTorch's form (torch.distributed.pipelining,
// ScheduleInterleaved1F1B): microbatches go in rounds; within a round a rank runs each of its
// virtual stages for all microbatches of the round in turn.

#include <algorithm>

#include "model/schedules/generators.hpp"

namespace forerun {
namespace {

/// Microbatches of a round.
std::int64_t round_of(const ScheduleRequest& r) {
  if (r.round > 0) return r.round;
  return r.microbatches / std::max<std::int64_t>(1, r.microbatches / r.ranks);
}

class Interleaved : public ScheduleGenerator {
 public:
  [[nodiscard]] ScheduleKind kind() const override { return ScheduleKind::kInterleaved1F1B; }

  [[nodiscard]] std::string refusal(const ScheduleRequest& request) const override {
    const std::int64_t rounds = std::max<std::int64_t>(1, request.microbatches / request.ranks);
    return request.microbatches % rounds == 0
               ? ""
               : "interleaved-1f1b wants a number of microbatches that is a multiple of its rounds";
  }

  [[nodiscard]] RankOrder order(const ScheduleRequest& request, int rank) const override {
    const std::int64_t v = request.virtual_stages, per_round = round_of(request);
    const std::int64_t total = request.microbatches * v;
    const std::int64_t warmup =
        std::min((v - 1) * per_round + 2 * (request.ranks - 1 - rank), total);
    const auto forward = [&](std::int64_t k) {
      return Action{ActionKind::kForward, static_cast<std::int16_t>(k / per_round % v),
                    k / (per_round * v) * per_round + k % per_round};
    };
    const auto backward = [&](std::int64_t k) {
      return Action{ActionKind::kBackward, static_cast<std::int16_t>(v - 1 - k / per_round % v),
                    k / (per_round * v) * per_round + k % per_round};
    };
    RankOrder order;
    for (std::int64_t k = 0; k < warmup; ++k)
      order.push_back(forward(k));
    for (std::int64_t k = warmup; k < total; ++k) {
      order.push_back(forward(k));
      order.push_back(backward(k - warmup));
    }
    for (std::int64_t k = total - warmup; k < total; ++k)
      order.push_back(backward(k));
    return order;
  }

  [[nodiscard]] std::int64_t stride(const ScheduleRequest& request) const override {
    return round_of(request);
  }
};

}  // namespace

const ScheduleGenerator& interleaved() {
  static const Interleaved generator;
  return generator;
}

}  // namespace forerun

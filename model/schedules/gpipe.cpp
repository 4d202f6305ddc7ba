// GPipe (Huang et al., 2019): all forwards, then all backwards.

#include "model/schedules/generators.hpp"

namespace forerun {
namespace {

class Gpipe : public ScheduleGenerator {
 public:
  [[nodiscard]] ScheduleKind kind() const override { return ScheduleKind::kGpipe; }

  [[nodiscard]] std::string refusal(const ScheduleRequest& request) const override {
    return request.virtual_stages == 1 ? "" : "gpipe runs one virtual stage a rank";
  }

  [[nodiscard]] RankOrder order(const ScheduleRequest& request, int) const override {
    RankOrder order;
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
      for (std::int64_t i = 0; i < request.microbatches; ++i)
        order.push_back({kind, 0, i});
    }
    return order;
  }

  [[nodiscard]] std::int64_t stride(const ScheduleRequest&) const override { return 0; }
};

}  // namespace

const ScheduleGenerator& gpipe() {
  static const Gpipe generator;
  return generator;
}

}  // namespace forerun

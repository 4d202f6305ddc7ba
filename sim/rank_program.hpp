#pragma once

// A rank's part of a program, unrolled one block at a time in the order in which the host enters
// blocks.

#include "model/program.hpp"

namespace forerun {

class RankProgram {
 public:
  RankProgram(const Program& program, int rank);

  /// What comes next in the rank's order.
  enum class Step { kActionBegins, kBlock, kActionEnds, kDone };
  Step next();

  /// Of the action that is under way.
  [[nodiscard]] const Action& action() const { return action_; }
  [[nodiscard]] int stage() const { return stage_; }
  /// Of the block that was just entered.
  [[nodiscard]] const Block& block() const { return *block_; }

 private:
  const Program& program_;
  int rank_;
  std::int64_t actions_;
  std::int64_t index_ = 0;
  Action action_;
  int stage_ = 0;
  Chain chain_;
  std::size_t link_ = 0;
  std::int64_t turn_ = 0;
  const Block* block_ = nullptr;
  bool inside_ = false;
};

}  // namespace forerun

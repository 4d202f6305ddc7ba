#include "sim/rank_program.hpp"

namespace forerun {

RankProgram::RankProgram(const Program& program, int rank)
    : program_(program), rank_(rank), actions_(program.schedule->actions(rank, program.repeats)) {}

RankProgram::Step RankProgram::next() {
  if (!inside_) {
    if (index_ == actions_) return Step::kDone;
    action_ = program_.schedule->action(rank_, index_++, program_.repeats);
    stage_ = program_.stage_of(rank_, action_.chunk);
    const ChainId id = program_.stages[static_cast<std::size_t>(stage_)]
                           .chain[static_cast<std::size_t>(action_.kind)];
    chain_ = id.valid() ? (*program_.pool)[id] : Chain();
    link_ = 0;
    turn_ = 0;
    inside_ = true;
    return Step::kActionBegins;
  }
  while (link_ < chain_.size()) {
    const ChainLink& link = chain_[link_];
    if (turn_ < link.count) {
      ++turn_;
      block_ = &(*program_.pool)[link.block];
      return Step::kBlock;
    }
    ++link_;
    turn_ = 0;
  }
  inside_ = false;
  return Step::kActionEnds;
}

}  // namespace forerun

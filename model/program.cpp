#include "model/program.hpp"

namespace forerun {

BlockId ProgramPool::add(Block block) {
  block.memory = {};
  for (const MemoryEvent& event : block.events) block.memory.apply(event);
  blocks_.push_back(std::move(block));
  return BlockId(static_cast<std::int32_t>(blocks_.size()) - 1);
}

ChainId ProgramPool::add(Chain chain) {
  chains_.push_back(std::move(chain));
  return ChainId(static_cast<std::int32_t>(chains_.size()) - 1);
}

}  // namespace forerun

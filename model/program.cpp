#include "model/program.hpp"

#include <memory>

namespace forerun {

/// The copies are never destroyed: nothing in them owns memory.
template <class T>
std::span<const T> ProgramPool::keep(std::span<const T> values) {
  T* copy = std::pmr::polymorphic_allocator<T>(&storage_).allocate(values.size());
  std::uninitialized_copy(values.begin(), values.end(), copy);
  return {copy, values.size()};
}

BlockId ProgramPool::add(const BlockDraft& draft) {
  Block block;
  block.name = draft.name;
  block.operations = keep(std::span<const Operation>(draft.operations));
  block.host_seconds = draft.host_seconds;
  block.events = keep(std::span<const MemoryEvent>(draft.events));
  for (const MemoryEvent& event : block.events)
    block.memory.apply(event);
  blocks_.push_back(block);
  return BlockId(static_cast<std::int32_t>(blocks_.size()) - 1);
}

ChainId ProgramPool::add(Chain chain) {
  chains_.push_back(keep(chain));
  return ChainId(static_cast<std::int32_t>(chains_.size()) - 1);
}

}  // namespace forerun

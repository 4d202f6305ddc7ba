#include "base/contract.hpp"
#include "model/sharding/sharding_families.hpp"

namespace forerun {

std::unique_ptr<ShardingStrategy> make_sharding(const SoftwareStack& software, const Costs& costs,
                                                ProgramPool& pool) {
  switch (software.sharding) {
    case ShardingFamily::kFsdp1:
    case ShardingFamily::kFsdp2:
      return make_fsdp2(software, costs, pool);
  }
  throw Bug("no such sharding family");
}

}  // namespace forerun

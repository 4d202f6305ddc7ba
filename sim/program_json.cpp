#include "sim/program_json.hpp"

#include <nlohmann/json.hpp>
#include <set>

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

std::string slot_name(int slot) {
  if (slot < 0) return "none";
  if (slot < kStreams) return std::string(to_text(static_cast<Stream>(slot)));
  static const char* const names[] = {"gathered", "gathered_next", "reduced"};
  return names[slot - kStreams];
}

Json operation_json(const Operation& op) {
  Json out;
  out["name"] = op.name;
  out["stream"] = slot_name(op.stream);
  out["family"] = to_text(op.family);
  out["category"] = to_text(op.category);
  out["seconds"] = op.seconds;
  out["issued_at"] = op.issued_at;
  if (op.collective != CollectiveKind::kNone) out["collective"] = to_text(op.collective);
  if (op.slows) out["slows_kernels"] = true;
  if (!op.after.empty()) out["after"] = std::vector<int>(op.after.begin(), op.after.end());
  for (const std::int8_t slot : op.waits)
    out["waits"].push_back(slot_name(slot));
  if (op.records >= 0) out["records"] = slot_name(op.records);
  return out;
}

Json block_json(const Block& block) {
  Json out;
  out["name"] = block.name;
  out["host_seconds"] = block.host_seconds;
  out["memory_net"] = block.memory.all.net;
  out["memory_peak"] = block.memory.all.peak;
  out["operations"] = Json::array();
  for (const Operation& op : block.operations)
    out["operations"].push_back(operation_json(op));
  return out;
}

Json actions_json(const std::vector<Action>& actions) {
  Json out = Json::array();
  for (const Action& a : actions) {
    out.push_back({{"action", to_text(a.kind)}, {"chunk", a.chunk}, {"microbatch", a.microbatch}});
  }
  return out;
}

}  // namespace

std::string program_json(const Program& program) {
  Json out;
  out["schema_version"] = 1;
  out["microbatches"] = program.microbatches();
  out["message_seconds"] = program.message_seconds;
  out["sync_seconds"] = program.sync_seconds;
  std::set<std::int32_t> used;
  out["stages"] = Json::array();
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    Json stage;
    stage["stage"] = s;
    stage["rank"] = static_cast<int>(s) % program.ranks;
    for (std::size_t kind = 0; kind < kActionKinds; ++kind) {
      const ChainId id = program.stages[s].chain[kind];
      if (!id.valid()) continue;
      Json chain = Json::array();
      for (const ChainLink& link : (*program.pool)[id]) {
        chain.push_back({{"block", link.block.index()}, {"count", link.count}});
        used.insert(link.block.index());
      }
      stage["chains"][std::string(to_text(static_cast<ActionKind>(kind)))] = chain;
    }
    out["stages"].push_back(stage);
  }
  for (const std::int32_t index : used) {
    out["blocks"][std::to_string(index)] = block_json((*program.pool)[BlockId(index)]);
  }
  out["schedule"]["cycle_repeats"] = program.repeats;
  out["schedule"]["cycle_stride"] = program.schedule->stride;
  for (const RankSchedule& rank : program.schedule->ranks) {
    out["schedule"]["ranks"].push_back({{"prefix", actions_json(rank.prefix.actions)},
                                        {"cycle", actions_json(rank.cycle.actions)},
                                        {"suffix", actions_json(rank.suffix.actions)}});
  }
  return out.dump(1);
}

}  // namespace forerun

#include "model/cost/profile.hpp"

#include <algorithm>

#include "base/catalog_file.hpp"
#include "base/yaml.hpp"

namespace forerun {
namespace {

/// One number of a parameter struct: its key and where it goes. Times carry a unit, sizes too.
struct Slot {
  enum class Unit { kNumber, kSeconds, kBytes, kWatts };
  const char* key;
  double* value;
  Unit unit = Unit::kNumber;
};

double read_slot(const Node& node, const std::string& key, Slot::Unit unit) {
  switch (unit) {
    case Slot::Unit::kSeconds:
      return node.scalar == "0" ? 0.0 : to_seconds(node, key).value();
    case Slot::Unit::kBytes:
      return to_bytes(node, key).value();
    case Slot::Unit::kWatts:
      return to_watts(node, key);
    case Slot::Unit::kNumber:
      break;
  }
  return to_number(node, key);
}

/// Reads a mapping that holds exactly these numbers, a source and, where fitted, a residual.
void read_slots(const Node& node, const std::string& path, const std::vector<Slot>& slots,
                std::vector<std::string> extra = {}) {
  std::vector<std::string> known{"source", "residual", "range"};
  known.insert(known.end(), extra.begin(), extra.end());
  for (const Slot& slot : slots)
    known.emplace_back(slot.key);
  const MappingReader file(node, path, known);
  for (const Slot& slot : slots) {
    *slot.value = read_slot(file.need(slot.key), file.dotted(slot.key), slot.unit);
  }
}

constexpr auto kSeconds = Slot::Unit::kSeconds;
constexpr auto kBytes = Slot::Unit::kBytes;
constexpr auto kWatts = Slot::Unit::kWatts;

void read_gemm(const Node& node, const std::string& path, GemmCosts& g) {
  read_slots(node, path,
             {{"peak_fraction", &g.peak_fraction},
              {"depth", &g.depth},
              {"launch", &g.launch, kSeconds},
              {"split", &g.split, kSeconds},
              {"hbm_fraction", &g.hbm_fraction},
              {"heat", &g.heat},
              {"wgrad", &g.wgrad},
              {"full_accumulation", &g.full_accumulation}});
}

void read_rate(const Node& node, const std::string& path, AttentionRate& rate) {
  read_slots(node, path, {{"peak_fraction", &rate.peak_fraction}, {"ramp", &rate.ramp}});
}

void read_attention(const Node& node, const std::string& path, AttentionCosts& a) {
  const std::vector<std::pair<const char*, AttentionRate*>> rates{
      {"forward_64", &a.forward_64},
      {"forward_128", &a.forward_128},
      {"backward_64", &a.backward_64},
      {"backward_128", &a.backward_128}};
  read_slots(node, path, {{"launch", &a.launch, kSeconds}},
             {"forward_64", "forward_128", "backward_64", "backward_128"});
  for (const auto& [key, rate] : rates) {
    const Node* at = node.find(key);
    if (at == nullptr) throw InputError(node.mark.place(), path + "." + key, "is missing");
    read_rate(*at, path + "." + key, *rate);
  }
}

void read_memory_bound(const Node& node, MemoryBoundCosts& m) {
  std::vector<Slot> slots{{"launch", &m.launch, kSeconds}};
  for (const KernelFamily family :
       {KernelFamily::kEager, KernelFamily::kEagerReduce, KernelFamily::kFused,
        KernelFamily::kStrided, KernelFamily::kOptimizer}) {
    slots.push_back({to_text(family).data(), &m.hbm_fraction[static_cast<std::size_t>(family)]});
  }
  read_slots(node, "memory_bound", slots);
}

void read_interference(const Node& node, InterferenceCosts& out) {
  read_slots(node, "interference",
             {{"collective_node", &out.collective_node},
              {"collective_net", &out.collective_net},
              {"product_beside_copies", &out.product_beside_copies}},
             {"kernels"});
  const Node* kernels = node.find("kernels");
  if (kernels == nullptr) {
    throw InputError(node.mark.place(), "interference.kernels", "is missing");
  }
  for (const Node::Entry& entry : kernels->entries) {
    const auto family = from_text<KernelFamily>(entry.key);
    if (!family) {
      throw InputError(entry.key_mark.place(), "interference.kernels." + entry.key,
                       "no such kernel family");
    }
    const double rate = to_number(entry.value, "interference.kernels." + entry.key);
    for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                      CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
      out.rates.rates[static_cast<std::size_t>(*family)][static_cast<std::size_t>(kind)] = rate;
    }
  }
}

void read_node_collective(const Node& node, const std::string& path, NodeCollectiveCosts& c) {
  read_slots(node, path,
             {{"launch", &c.launch, kSeconds},
              {"hop", &c.hop, kSeconds},
              {"efficiency", &c.efficiency},
              {"own_share", &c.own_share},
              {"fill", &c.fill, kSeconds},
              {"fill_power", &c.fill_power},
              {"fill_bytes", &c.fill_bytes, kBytes},
              {"fill_sharpness", &c.fill_sharpness},
              {"norm", &c.norm}});
}

void read_nvls(const Node& node, NvlsCosts& c) {
  double fewest = 0;
  read_slots(node, "collectives.nvls",
             {{"fewest_ranks", &fewest},
              {"efficiency", &c.efficiency},
              {"fill", &c.fill, kSeconds},
              {"fill_bytes", &c.fill_bytes, kBytes},
              {"fill_sharpness", &c.fill_sharpness}});
  c.fewest_ranks = static_cast<std::int64_t>(fewest);
}

void read_send(const Node& node, const std::string& path, SendCosts& c) {
  read_slots(node, path, {{"latency", &c.latency, kSeconds}, {"efficiency", &c.efficiency}});
}

void read_transport(const Node& node, const std::string& path, TransportCosts& t) {
  read_slots(node, path,
             {{"hop_small", &t.hop_small, kSeconds},
              {"hop", &t.hop, kSeconds},
              {"ring_efficiency", &t.ring_efficiency},
              {"allreduce_efficiency", &t.allreduce_efficiency},
              {"alltoall_efficiency", &t.alltoall_efficiency},
              {"send_latency", &t.send.latency, kSeconds},
              {"send_efficiency", &t.send.efficiency},
              {"allreduce_base", &t.allreduce_base, kSeconds},
              {"allreduce_step", &t.allreduce_step, kSeconds},
              {"allreduce_bulk", &t.allreduce_bulk, kSeconds},
              {"allreduce_bulk_step", &t.allreduce_bulk_step, kSeconds},
              {"allreduce_bulk_bytes", &t.allreduce_bulk_bytes, kBytes},
              {"allreduce_bulk_power", &t.allreduce_bulk_power}});
}

void read_collectives(const Node& node, Profile& profile) {
  CollectiveCosts& c = profile.collectives;
  const MappingReader file(node, "collectives",
                           {"allgather", "reducescatter", "allreduce", "alltoall", "nvls", "send",
                            "ring_efficiency", "beyond_host", "transports"});
  read_node_collective(file.need("allgather"), "collectives.allgather", c.all_gather);
  read_node_collective(file.need("reducescatter"), "collectives.reducescatter", c.reduce_scatter);
  read_node_collective(file.need("allreduce"), "collectives.allreduce", c.all_reduce);
  read_node_collective(file.need("alltoall"), "collectives.alltoall", c.all_to_all);
  if (const Node* nvls = file.find("nvls")) read_nvls(*nvls, c.nvls);
  read_send(file.need("send"), "collectives.send", c.send);
  c.ring_efficiency = file.required("ring_efficiency", to_number);
  c.beyond_host = file.optional("beyond_host", to_number).value_or(1.0);
  const MappingReader transports(file.need("transports"), "collectives.transports",
                                 {"infiniband", "roce", "efa"});
  for (std::size_t i = 0; i < kTransports; ++i) {
    const std::string key(to_text(static_cast<Transport>(i)));
    read_transport(transports.need(key), transports.dotted(key), profile.transports[i]);
  }
}

}  // namespace

Profile read_profile(const Node& root, const std::string& id) {
  const MappingReader file(root, "",
                           {"date", "description", "gpus", "sources", "gemm", "attention",
                            "memory_bound", "power", "interference", "collectives"});
  Profile profile;
  profile.id = id;
  profile.date = file.required("date", to_text_value);
  profile.description = file.required("description", to_text_value);
  profile.gpus = file.required("gpus", to_texts);
  profile.sources = file.required("sources", to_texts);
  const MappingReader gemm(file.need("gemm"), "gemm",
                           {"bf16", "fp16", "fp32", "fp8", "mxfp8", "fp4"});
  read_gemm(gemm.need("bf16"), "gemm.bf16", profile.gemm_bf16);
  profile.gemm_fp16 = profile.gemm_fp32 = profile.gemm_bf16;
  const auto read_if_given = [&](const char* key, GemmCosts& costs) {
    if (const Node* given = gemm.find(key)) read_gemm(*given, gemm.dotted(key), costs);
  };
  read_if_given("fp16", profile.gemm_fp16);
  read_if_given("fp32", profile.gemm_fp32);
  read_if_given("fp8", profile.gemm_fp8);
  profile.gemm_mxfp8 = profile.gemm_fp8;
  read_if_given("mxfp8", profile.gemm_mxfp8);
  read_if_given("fp4", profile.gemm_fp4);
  const MappingReader attention(file.need("attention"), "attention",
                                {"flash2", "flash3", "cudnn", "unfused", "flash1"});
  for (std::size_t i = 0; i < kAttentionFamilies; ++i) {
    const std::string key(to_text(static_cast<AttentionKernel>(i)));
    if (const Node* node = attention.find(key)) {
      read_attention(*node, attention.dotted(key), profile.attention[i]);
    }
  }
  read_memory_bound(file.need("memory_bound"), profile.memory_bound);
  PowerCosts& power = profile.power;
  read_slots(file.need("power"), "power",
             {{"idle", &power.idle, kWatts},
              {"dynamic", &power.dynamic, kWatts},
              {"in_step", &power.in_step},
              {"fp8_activity", &power.fp8_activity},
              {"chip_spread", &power.chip_spread}});
  read_interference(file.need("interference"), profile.interference);
  read_collectives(file.need("collectives"), profile);
  return profile;
}

Profile load_profile(const DataPath& data, const std::string& gpu) {
  for (const std::string& name : data.names(kProfileFolder)) {
    const Node root = read_catalog_file(data, kProfileFolder, "profile", name, {}, "profile");
    const Node* gpus = root.find("gpus");
    const bool made_for_it =
        gpus != nullptr && std::any_of(gpus->items.begin(), gpus->items.end(),
                                       [&](const Node& item) { return item.scalar == gpu; });
    if (made_for_it) return read_profile(root, name);
  }
  throw Unsupported("GPU " + gpu + ": no calibration profile has it");
}

}  // namespace forerun

#include <fmt/format.h>

#include <iterator>

#include "base/nearest.hpp"
#include "base/units.hpp"
#include "report/json.hpp"
#include "report/report.hpp"

namespace forerun {
namespace {

/// "0 8 16 ... (32 ranks)".
std::string members_text(const MeshGroup& g) {
  std::string out;
  for (std::size_t i = 0; i < g.members.size() && i < 8; ++i) {
    out += (i > 0 ? " " : "") + std::to_string(g.members[i]);
  }
  return g.span.ranks > 8 ? out + " ..." : out;
}

std::string link_name(Tier tier) {
  switch (tier) {
    case Tier::kNode:
      return "NVLink inside a node";
    case Tier::kRack:
      return "NIC inside a rack or pod";
    case Tier::kCluster:
      return "spine between racks or pods";
    case Tier::kGpu:
      break;
  }
  return "none";
}

}  // namespace

std::string mesh_json(const MeshResult& r) {
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["status"] = "ok";
  out["gpus"] = r.gpus;
  out["mesh"] = r.order;
  out["groups"] = Json::array();
  for (const MeshGroup& g : r.groups) {
    out["groups"].push_back({{"name", g.name},
                             {"groups", g.groups},
                             {"ranks", g.span.ranks},
                             {"nodes", g.span.nodes},
                             {"ranks_per_node", g.span.ranks_per_node},
                             {"racks", g.span.racks},
                             {"slowest_tier", to_text(g.span.tier)},
                             {"bandwidth_gb_s_gpu", g.bandwidth.value() / 1e9},
                             {"members_of_rank_0", g.members}});
  }
  out["warnings"] = r.warnings;
  return document(out);
}

std::string mesh_text(const MeshResult& r) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{} GPUs, outermost first: {}\n", r.gpus, join(r.order, " > "));
  for (const MeshGroup& g : r.groups) {
    fmt::format_to(out, "\n{}: {} group{} of {} ranks\n", g.name, g.groups,
                   g.groups == 1 ? "" : "s", g.span.ranks);
    fmt::format_to(out, "  ranks of the first: {}\n", members_text(g));
    fmt::format_to(out, "  on {} node{} ({} rank{} a node), {} rack{} or pod{}\n", g.span.nodes,
                   g.span.nodes == 1 ? "" : "s", g.span.ranks_per_node,
                   g.span.ranks_per_node == 1 ? "" : "s", g.span.racks,
                   g.span.racks == 1 ? "" : "s", g.span.racks == 1 ? "" : "s");
    fmt::format_to(out, "  slowest link: {}, {} a GPU and direction\n", link_name(g.span.tier),
                   text_of(g.bandwidth));
  }
  for (const std::string& warning : r.warnings)
    fmt::format_to(out, "\nwarning: {}\n", warning);
  return text;
}

}  // namespace forerun

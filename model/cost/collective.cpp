#include "model/cost/collective.hpp"

#include <algorithm>
#include <cmath>

#include "base/contract.hpp"

namespace forerun {
namespace {

constexpr double kSmallShard = 64 * kKiB;  // bytes a rank where LL gives way to LL128

/// 0 far below x = 1, 1 far above.
double rise(double x, double sharpness) {
  return 1 / (1 + std::pow(x, -sharpness));
}

double on_node(const NodeCollectiveCosts& c, double bytes, double ranks, double rounds,
               double nvlink) {
  const double steps = rounds * (ranks - 1);
  const double wire = rounds * bytes * (ranks - c.own_share) / ranks / (c.efficiency * nvlink);
  const double fill = c.fill * std::pow(steps, c.fill_power) *
                      rise(bytes / (ranks * c.fill_bytes), c.fill_sharpness);
  const double both = c.norm == 1
                          ? wire + fill
                          : std::pow(std::pow(wire, c.norm) + std::pow(fill, c.norm), 1 / c.norm);
  return c.launch + c.hop * steps + both;
}

double nvls(const NvlsCosts& c, const NodeCollectiveCosts& ring, double bytes, double ranks,
            double nvlink) {
  return ring.launch + 2 * (ranks - 1) * ring.hop + bytes / (c.efficiency * nvlink) +
         c.fill * rise(bytes / c.fill_bytes, c.fill_sharpness);
}

/// NVLink bandwidth that a ring finds: less where it passes through several hosts.
double ring_link(const CollectiveCosts& costs, double ranks, const CollectiveDevice& device) {
  const bool beyond = device.host_gpus > 0 && ranks > static_cast<double>(device.host_gpus);
  return device.nvlink.value() * (beyond ? costs.beyond_host : 1);
}

double all_reduce_on_node(const CollectiveCosts& costs, double bytes, double ranks,
                          const CollectiveDevice& device) {
  const double nvlink = device.nvlink.value();
  const double ring = on_node(costs.all_reduce, bytes, ranks, 2, ring_link(costs, ranks, device));
  const bool has_nvls =
      costs.nvls.fewest_ranks > 0 && ranks >= static_cast<double>(costs.nvls.fewest_ranks);
  return has_nvls ? std::min(ring, nvls(costs.nvls, costs.all_reduce, bytes, ranks, nvlink)) : ring;
}

struct Shape {
  double ranks, nodes, per_node;
};

Shape shape_of(const Span& span) {
  const auto ranks = static_cast<double>(span.ranks), nodes = static_cast<double>(span.nodes);
  return {ranks, nodes, std::max(1.0, ranks / nodes)};
}

double ring_across(const NodeCollectiveCosts& node, const CollectiveCosts& costs, double bytes,
                   const Shape& s, const CollectiveDevice& device) {
  const TransportCosts& t = costs.transport;
  const double large = rise(bytes / s.ranks / kSmallShard, 1.5);
  const double hop_net = t.hop_small + (t.hop - t.hop_small) * large;
  const double hop_node = node.hop * (1 + 0.4 * large);
  const double latency = s.per_node > 1
                             ? std::max(0.0, s.ranks - 1 - s.nodes) * hop_node + s.nodes * hop_net
                             : (s.nodes - 1) * hop_net;
  const double nics = s.per_node * device.nic_per_gpu.value() * t.ring_efficiency;
  const double bandwidth =
      s.per_node > 1 ? std::min(costs.ring_efficiency * ring_link(costs, s.per_node, device), nics)
                     : nics;
  return node.launch + latency + bytes * (s.ranks - 1) / s.ranks / bandwidth;
}

double all_reduce_across(const CollectiveCosts& costs, double bytes, const Shape& s,
                         const CollectiveDevice& device) {
  const TransportCosts& t = costs.transport;
  const double levels = std::log2(s.nodes);
  const double crossings = s.nodes <= 2 ? 1 : s.nodes <= 3 ? 1.5 : 2;  // of the NIC, by the trees
  const bool has_nvls =
      costs.nvls.fewest_ranks > 0 && s.per_node >= static_cast<double>(costs.nvls.fewest_ranks);
  constexpr double kNvlsTree = 0.93;  // NVLS inside a tree over its rate alone
  const double inside =
      has_nvls ? kNvlsTree * costs.nvls.efficiency * device.nvlink.value()
               : costs.ring_efficiency * device.nvlink.value() * s.ranks / (2 * (s.ranks - 1));
  const double across =
      s.per_node * device.nic_per_gpu.value() * t.allreduce_efficiency / crossings;
  const double bandwidth = s.per_node > 1 ? std::min(inside, across) : across;
  const double bulk = (t.allreduce_bulk + t.allreduce_bulk_step * levels) *
                      rise(bytes / t.allreduce_bulk_bytes, t.allreduce_bulk_power);
  return std::max(t.allreduce_base + t.allreduce_step * levels, bulk) + bytes / bandwidth;
}

double all_to_all_across(const CollectiveCosts& costs, double bytes, const Shape& s,
                         const CollectiveDevice& device) {
  const TransportCosts& t = costs.transport;
  constexpr double kSetup = 120e-6, kSetupBytes = 2 * kMiB;  // fitted on 2-node tables
  const double outside = bytes * (s.ranks - s.per_node) / s.ranks;
  const double net = t.send.latency + kSetup * rise(bytes / kSetupBytes, 1) +
                     outside / (device.nic_per_gpu.value() * t.alltoall_efficiency);
  if (s.per_node <= 1) return net;
  const double inside =
      on_node(costs.all_to_all, bytes * s.per_node / s.ranks, s.per_node, 1, device.nvlink.value());
  return std::max(net, inside);
}

}  // namespace

Seconds collective_time(CollectiveKind kind, double bytes, const Span& span,
                        const CollectiveCosts& costs, const CollectiveDevice& device) {
  if (kind == CollectiveKind::kNone || span.ranks <= 1 || bytes <= 0) return Seconds(0);
  const Shape s = shape_of(span);
  const bool inside = span.nodes == 1;
  const double nvlink = device.nvlink.value(), ring = ring_link(costs, s.ranks, device);
  switch (kind) {
    case CollectiveKind::kAllGather:
      return Seconds(inside ? on_node(costs.all_gather, bytes, s.ranks, 1, ring)
                            : ring_across(costs.all_gather, costs, bytes, s, device));
    case CollectiveKind::kReduceScatter:
      return Seconds(inside ? on_node(costs.reduce_scatter, bytes, s.ranks, 1, ring)
                            : ring_across(costs.reduce_scatter, costs, bytes, s, device));
    case CollectiveKind::kAllReduce:
      return Seconds(inside ? all_reduce_on_node(costs, bytes, s.ranks, device)
                            : all_reduce_across(costs, bytes, s, device));
    case CollectiveKind::kAllToAll:
      return Seconds(inside ? on_node(costs.all_to_all, bytes, s.ranks, 1, nvlink)
                            : all_to_all_across(costs, bytes, s, device));
    case CollectiveKind::kSendRecv:
      return send_time(bytes, span.tier, costs, device);
    default:
      throw Bug("no cost formula for collective " + std::string(to_text(kind)));
  }
}

Seconds send_time(double bytes, Tier tier, const CollectiveCosts& costs,
                  const CollectiveDevice& device) {
  if (tier == Tier::kGpu) return Seconds(0);
  const bool inside = tier == Tier::kNode;
  const SendCosts& c = inside ? costs.send : costs.transport.send;
  const double link = inside ? device.nvlink.value() : device.nic_per_gpu.value();
  return Seconds(c.latency + bytes / (c.efficiency * link));
}

}  // namespace forerun

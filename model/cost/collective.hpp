#pragma once

// Time of NCCL collectives by operation, size and span. Bytes are counted as nccl-tests count them:
// all-gather, reduce-scatter, all-reduce: the whole buffer; all-to-all: the buffer of one rank;
// send/recv: the message. n ranks on N nodes.
//
// Inside one NVLink domain (n ranks, S bytes, st = M (n - 1) steps, M = 2 for all-reduce, else 1):
//   t = a0 + a1 st + [(M S (n - c) / (n B))^q + (tau st^kappa / (1 + (n s / S)^m))^q]^(1/q)
//   launch and hops; the wire, the rank's own share costing 1 - c; the fill of the Simple
//   protocol's pipeline, which is the shoulder between 1 and 64 MiB. NVLS all-reduce beside it, the
//   faster wins. Where NVLink joins several hosts, rings that leave one run at a share of B.
// Across nodes, all-gather and reduce-scatter (a ring through all ranks):
//   t = a0 + (n - 1 - N) h_nvlink + N h_net + S (n - 1) / (n B),  B = min(NVLink ring, NICs)
//   h_net rises from the LL to the LL128 hop around 64 KiB a rank.
// All-reduce across nodes (trees): latency by log2 N, the NIC crossed once at 2 nodes, else twice.
// They are never derived from each other. Sources: aiconfigurator's NCCL tables (Apache-2.0),
// nccl-tests reports, cloud vendors' tables; residuals stand in the profile.

#include <array>

#include "base/quantity.hpp"
#include "model/placement.hpp"
#include "topology/span.hpp"

namespace forerun {

/// Of one operation inside an NVLink domain; symbols as above.
struct NodeCollectiveCosts {
  double launch = 0;          ///< a0, s
  double hop = 0;             ///< a1, s
  double efficiency = 0;      ///< B over the NVLink bandwidth of a GPU
  double own_share = 0;       ///< c
  double fill = 0;            ///< tau, s
  double fill_power = 0;      ///< kappa
  double fill_bytes = 0;      ///< s, a rank
  double fill_sharpness = 0;  ///< m
  double norm = 1;            ///< q
};

struct NvlsCosts {
  std::int64_t fewest_ranks = 0;  ///< 0: no NVLS
  double efficiency = 0;          ///< algorithm bandwidth over NVLink bandwidth
  double fill = 0;                ///< s
  double fill_bytes = 0;
  double fill_sharpness = 0;
};

struct SendCosts {
  double latency = 0;     ///< s
  double efficiency = 0;  ///< of NVLink or NIC bandwidth
};

/// Of a transport between nodes.
struct TransportCosts {
  double hop_small = 0;        ///< h_net of the LL protocol, s
  double hop = 0;              ///< h_net of LL128, s
  double ring_efficiency = 0;  ///< of NIC bandwidth
  double allreduce_efficiency = 0;
  double alltoall_efficiency = 0;
  SendCosts send;
  // All-reduce latency: max(base + log2(N) x step, (bulk + log2(N) x bulk_step) / (1 + (b / S)^p))
  double allreduce_base = 0, allreduce_step = 0;       ///< s
  double allreduce_bulk = 0, allreduce_bulk_step = 0;  ///< s
  double allreduce_bulk_bytes = 0, allreduce_bulk_power = 0;
};

struct CollectiveCosts {
  NodeCollectiveCosts all_gather, reduce_scatter, all_reduce, all_to_all;
  NvlsCosts nvls;
  SendCosts send;              ///< inside a node
  double ring_efficiency = 0;  ///< NVLink part of a ring across nodes
  double beyond_host = 1;      ///< of a ring's bandwidth where NVLink joins several hosts
  TransportCosts transport;    ///< of the cluster's transport
};

/// What the links give one GPU.
struct CollectiveDevice {
  BytesPerSecond nvlink;       ///< one direction
  BytesPerSecond nic_per_gpu;  ///< one direction, oversubscription taken off where it is crossed
  std::int64_t host_gpus = 0;  ///< where NVLink joins several hosts; else 0
};

Seconds collective_time(CollectiveKind kind, double bytes, const Span& span,
                        const CollectiveCosts& costs, const CollectiveDevice& device);

/// One message between neighbours that are `tier` apart.
Seconds send_time(double bytes, Tier tier, const CollectiveCosts& costs,
                  const CollectiveDevice& device);

}  // namespace forerun

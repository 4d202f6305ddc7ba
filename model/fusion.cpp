#include "model/fusion.hpp"

#include <algorithm>
#include <bitset>
#include <cstdlib>
#include <numeric>
#include <tuple>

#include "base/contract.hpp"

namespace forerun {
namespace {

constexpr std::size_t kMaxOps = 512;
using OpSet = std::bitset<kMaxOps>;

/// Rows (batch x sequence) and columns a fusible operator iterates over, on one rank.
struct Domain {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool operator==(const Domain&) const = default;
};

class Fuser {
 public:
  Fuser(const PlacedGraph& graph, const std::vector<Execution>& pass,
        const std::vector<bool>& kept)
      : graph_(graph), pass_(pass), kept_(kept), group_(pass.size()) {
    FR_ASSERT(pass.size() <= kMaxOps);
    std::iota(group_.begin(), group_.end(), 0);
    index_tensors();
    find_ancestors();
    for (std::size_t i = 0; i < pass.size(); ++i) {
      groups_.push_back({OpSet().set(i), op(i).space, domain(i)});
    }
  }

  void merge_all() {
    bool changed = true;
    for (int round = 0; changed && round < 10; ++round) changed = merge_round();
  }

  std::vector<FusedKernel> kernels() const {
    std::vector<FusedKernel> out;
    for (const std::size_t g : ordered_groups()) out.push_back(kernel(g));
    return out;
  }

 private:
  struct Group {
    OpSet members;
    OpSpace space;
    Domain domain;
  };
  struct Candidate {
    bool same_kind;
    std::int64_t saved;
    int distance;
    std::size_t a, b;
  };

  [[nodiscard]] const Operator& op(std::size_t i) const { return graph_[pass_[i].op]; }

  void index_tensors() {
    producer_.assign(static_cast<std::size_t>(graph_.graph().tensors()), -1);
    users_.resize(producer_.size());
    for (std::size_t i = 0; i < pass_.size(); ++i) {
      for (const TensorId t : op(i).outputs) producer_[index(t)] = static_cast<int>(i);
      for (const TensorId t : op(i).inputs) users_[index(t)].push_back(i);
    }
  }

  static std::size_t index(TensorId t) { return static_cast<std::size_t>(t.index()); }

  void find_ancestors() {
    ancestors_.resize(pass_.size());
    for (std::size_t i = 0; i < pass_.size(); ++i) {
      for (const TensorId t : op(i).inputs) {
        const int p = producer_[index(t)];
        if (p < 0 || static_cast<std::size_t>(p) >= i) continue;
        ancestors_[i] |= ancestors_[static_cast<std::size_t>(p)];
        ancestors_[i].set(static_cast<std::size_t>(p));
      }
    }
  }

  [[nodiscard]] Domain domain(std::size_t i) const {
    Domain widest;
    const auto look = [&](TensorId t) {
      const Dims d = graph_.local_dims(t);
      if (d[0] * d[1] * d[2] > widest.rows * widest.columns) widest = {d[0] * d[1], d[2]};
    };
    for (const TensorId t : op(i).outputs) look(t);
    for (const TensorId t : op(i).inputs) look(t);
    return widest;
  }

  // ---- which pairs may be fused --------------------------------------------------------------

  [[nodiscard]] static bool reduces(OpSpace s) { return s != OpSpace::kPointwise; }

  /// A reduction over rows or over everything ends its kernel: only its producers fuse with it.
  [[nodiscard]] static bool ends_kernel(OpSpace s) {
    return s == OpSpace::kColumnReduction || s == OpSpace::kFullReduction;
  }

  [[nodiscard]] bool compatible(const Group& a, const Group& b) const {
    if (a.space == OpSpace::kExtern || b.space == OpSpace::kExtern) return false;
    const bool same = a.domain == b.domain;
    const bool row_statistic = a.domain.rows == b.domain.rows &&
                               (a.domain.columns == 1 || b.domain.columns == 1) &&
                               !ends_kernel(a.space) && !ends_kernel(b.space);
    if (!same && !row_statistic) return false;
    if (ends_kernel(a.space)) return ends_kernel(b.space) && a.space == b.space && !depends(b, a);
    if (ends_kernel(b.space)) return a.space == OpSpace::kPointwise;
    return true;
  }

  [[nodiscard]] bool depends(const Group& later, const Group& earlier) const {
    for (std::size_t i = 0; i < pass_.size(); ++i) {
      if (later.members[i] && (ancestors_[i] & earlier.members).any()) return true;
    }
    return false;
  }

  /// No operator outside both may have to run between them.
  [[nodiscard]] bool legal(const Group& a, const Group& b) const {
    const OpSet both = a.members | b.members;
    OpSet above, between;  // ancestors of the pair; outsiders that depend on the pair
    for (std::size_t i = 0; i < pass_.size(); ++i) {
      if (both[i]) above |= ancestors_[i];
    }
    above &= ~both;
    for (std::size_t i = 0; i < pass_.size(); ++i) {
      if (!above[i]) continue;
      const OpSet whole = groups_[group_[i]].members;
      for (std::size_t j = 0; j < pass_.size(); ++j) {
        if (whole[j] && (ancestors_[j] & both).any()) return false;
      }
    }
    return true;
  }

  // ---- scores --------------------------------------------------------------------------------

  [[nodiscard]] bool read_by(TensorId t, const Group& g) const {
    return std::any_of(users_[index(t)].begin(), users_[index(t)].end(),
                       [&](std::size_t i) { return g.members[i]; });
  }
  [[nodiscard]] bool written_by(TensorId t, const Group& g) const {
    const int p = producer_[index(t)];
    return p >= 0 && g.members[static_cast<std::size_t>(p)];
  }

  /// Bytes of memory traffic that disappear when the two become one kernel.
  [[nodiscard]] std::int64_t bytes_saved(const Group& a, const Group& b) const {
    std::int64_t saved = 0;
    for (std::size_t t = 0; t < users_.size(); ++t) {
      const TensorId id(static_cast<std::int32_t>(t));
      if (users_[t].empty()) continue;
      const bool ra = read_by(id, a), rb = read_by(id, b);
      if ((written_by(id, a) && rb) || (written_by(id, b) && ra) || (ra && rb)) {
        saved += graph_.local_bytes(id);
      }
    }
    return saved;
  }

  [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> pairs() const {
    std::vector<std::pair<std::size_t, std::size_t>> out;
    for (std::size_t t = 0; t < users_.size(); ++t) {
      std::vector<std::size_t> near = users_[t];
      if (producer_[t] >= 0) near.push_back(static_cast<std::size_t>(producer_[t]));
      for (const std::size_t i : near) {
        for (const std::size_t j : near) {
          const std::size_t a = group_[i], b = group_[j];
          if (a < b) out.emplace_back(a, b);
        }
      }
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  bool merge_round() {
    std::vector<Candidate> candidates;
    for (const auto& [a, b] : pairs()) {
      if (!compatible(groups_[a], groups_[b])) continue;
      const std::int64_t saved = bytes_saved(groups_[a], groups_[b]);
      if (saved == 0) continue;
      const bool same = reduces(groups_[a].space) == reduces(groups_[b].space);
      candidates.push_back({same, saved, static_cast<int>(b - a), a, b});
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const auto& x, const auto& y) {
      return std::tuple(!x.same_kind, -x.saved, x.distance) <
             std::tuple(!y.same_kind, -y.saved, y.distance);
    });
    bool changed = false;
    for (const Candidate& c : candidates) changed |= merge(c.a, c.b);
    return changed;
  }

  bool merge(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    if (a == b || !compatible(groups_[a], groups_[b]) || !legal(groups_[a], groups_[b])) {
      return false;
    }
    if (a > b) std::swap(a, b);
    Group& into = groups_[a];
    const Group& from = groups_[b];
    if (reduces(from.space)) into.space = from.space;
    if (from.domain.columns > into.domain.columns) into.domain = from.domain;
    for (std::size_t i = 0; i < pass_.size(); ++i) {
      if (from.members[i]) group_[i] = a;
    }
    into.members |= from.members;
    return true;
  }

  /// The group that a former group's operators are in now.
  [[nodiscard]] std::size_t root(std::size_t g) const { return group_[g]; }

  // ---- results -------------------------------------------------------------------------------

  /// Groups in an order that respects every dependency, else by their first operator.
  [[nodiscard]] std::vector<std::size_t> ordered_groups() const {
    std::vector<std::size_t> order;
    OpSet done;
    std::vector<bool> emitted(pass_.size(), false);
    for (std::size_t count = 0, groups = live_groups(); count < groups; ++count) {
      const std::size_t g = next_ready(done, emitted);
      emitted[g] = true;
      done |= groups_[g].members;
      order.push_back(g);
    }
    return order;
  }

  [[nodiscard]] std::size_t live_groups() const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < pass_.size(); ++i) n += group_[i] == i ? 1 : 0;
    return n;
  }

  [[nodiscard]] std::size_t next_ready(const OpSet& done, const std::vector<bool>& emitted) const {
    for (std::size_t g = 0; g < pass_.size(); ++g) {
      if (group_[g] != g || emitted[g]) continue;
      OpSet need;
      for (std::size_t i = 0; i < pass_.size(); ++i) {
        if (groups_[g].members[i]) need |= ancestors_[i];
      }
      if ((need & ~groups_[g].members & ~done).none()) return g;
    }
    throw Bug("fusion made a cycle");
  }

  [[nodiscard]] FusedKernel kernel(std::size_t g) const {
    FusedKernel out;
    out.space = groups_[g].space;
    for (std::size_t i = 0; i < pass_.size(); ++i) {
      if (!groups_[g].members[i]) continue;
      out.ops.push_back(pass_[i]);
      for (const TensorId t : op(i).inputs) {
        const bool outside = !written_by(t, groups_[g]);
        if (outside && std::find(out.reads.begin(), out.reads.end(), t) == out.reads.end()) {
          out.reads.push_back(t);
        }
      }
      for (const TensorId t : op(i).outputs) {
        if (used_outside(t, groups_[g])) out.writes.push_back(t);
      }
    }
    return out;
  }

  [[nodiscard]] bool used_outside(TensorId t, const Group& g) const {
    return kept_[index(t)] || std::any_of(users_[index(t)].begin(), users_[index(t)].end(),
                                          [&](std::size_t i) { return !g.members[i]; });
  }

  const PlacedGraph& graph_;
  const std::vector<Execution>& pass_;
  const std::vector<bool>& kept_;
  std::vector<std::size_t> group_;  // by operator: index of its group
  std::vector<Group> groups_;
  std::vector<int> producer_;                    // by tensor: operator of this pass, or -1
  std::vector<std::vector<std::size_t>> users_;  // by tensor
  std::vector<OpSet> ancestors_;                 // by operator
};

FusedKernel single(const PlacedGraph& graph, const Execution& e) {
  const Operator& op = graph[e.op];
  FusedKernel kernel{{e}, op.space, {}, {op.outputs.begin(), op.outputs.end()}};
  for (const TensorId t : op.inputs) {
    if (std::find(kernel.reads.begin(), kernel.reads.end(), t) == kernel.reads.end()) {
      kernel.reads.push_back(t);
    }
  }
  return kernel;
}

}  // namespace

std::vector<FusedKernel> fuse(const PlacedGraph& graph, const std::vector<Execution>& pass,
                              const std::vector<bool>& kept, bool compiled) {
  if (!compiled) {
    std::vector<FusedKernel> out;
    for (const Execution& e : pass) out.push_back(single(graph, e));
    return out;
  }
  Fuser fuser(graph, pass, kept);
  fuser.merge_all();
  return fuser.kernels();
}

}  // namespace forerun

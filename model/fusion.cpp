#include "model/fusion.hpp"

#include <algorithm>
#include <bitset>
#include <cstdlib>
#include <numeric>
#include <tuple>

#include "base/contract.hpp"

namespace forerun {
namespace {

constexpr std::size_t kMaxOps = 320;
using OpSet = std::bitset<kMaxOps>;

/// Rows (batch x sequence) and columns a fusible operator iterates over, on one rank.
struct Domain {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool operator==(const Domain&) const = default;
};

class Fuser {
 public:
  Fuser(const PlacedGraph& graph, const std::vector<Execution>& pass, const std::vector<bool>& kept)
      : graph_(graph), pass_(pass), kept_(kept), group_(pass.size()) {
    FR_ASSERT(pass.size() <= kMaxOps);
    std::iota(group_.begin(), group_.end(), 0);
    index_tensors();
    find_ancestors();
    for (std::size_t i = 0; i < pass.size(); ++i) {
      groups_.push_back({OpSet().set(i), ancestors_[i], op(i).space, domain(i)});
    }
  }

  void merge_all() {
    bool changed = true;
    for (int round = 0; changed && round < 10; ++round)
      changed = merge_round();
  }

  std::vector<FusedKernel> kernels() const {
    std::vector<FusedKernel> out;
    for (const std::size_t g : ordered_groups())
      out.push_back(kernel(g));
    return out;
  }

 private:
  struct Group {
    OpSet members;
    OpSet above;  // what must run before it, whole groups taken together
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
      for (const TensorId t : op(i).outputs)
        producer_[index(t)] = static_cast<int>(i);
      for (const TensorId t : op(i).inputs)
        users_[index(t)].push_back(i);
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
    for (const TensorId t : op(i).outputs)
      look(t);
    for (const TensorId t : op(i).inputs)
      look(t);
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

  [[nodiscard]] static bool depends(const Group& later, const Group& earlier) {
    return (later.above & earlier.members).any();
  }

  /// No group outside both may have to run between them.
  [[nodiscard]] bool legal(const Group& a, const Group& b) const {
    const OpSet both = a.members | b.members;
    const OpSet above = (a.above | b.above) & ~both;
    if (above.none()) return true;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (group_[g] != g || (groups_[g].members & above).none()) continue;
      if ((groups_[g].above & both).any()) return false;
    }
    return true;
  }

  // ---- scores --------------------------------------------------------------------------------

  struct Shared {
    std::size_t a, b;    // groups, a < b
    std::int64_t bytes;  // of tensors that both touch
    [[nodiscard]] std::pair<std::size_t, std::size_t> pair() const { return {a, b}; }
  };

  /// Pairs of groups that touch a common tensor, and the bytes of memory traffic that disappear
  /// when the two become one kernel.
  const std::vector<Shared>& shared() {
    shared_.clear();
    for (std::size_t t = 0; t < users_.size(); ++t) {
      if (users_[t].empty()) continue;
      near_.clear();
      if (producer_[t] >= 0) near_.push_back(group_[static_cast<std::size_t>(producer_[t])]);
      for (const std::size_t user : users_[t])
        near_.push_back(group_[user]);
      std::sort(near_.begin(), near_.end());
      near_.erase(std::unique(near_.begin(), near_.end()), near_.end());
      if (near_.size() < 2) continue;
      const std::int64_t bytes = graph_.local_bytes(TensorId(static_cast<std::int32_t>(t)));
      for (std::size_t i = 0; i < near_.size(); ++i) {
        for (std::size_t j = i + 1; j < near_.size(); ++j) {
          shared_.push_back({near_[i], near_[j], bytes});
        }
      }
    }
    std::sort(shared_.begin(), shared_.end(),
              [](const Shared& x, const Shared& y) { return x.pair() < y.pair(); });
    std::size_t n = 0;
    for (const Shared& s : shared_) {
      if (n > 0 && shared_[n - 1].pair() == s.pair()) {
        shared_[n - 1].bytes += s.bytes;
      } else {
        shared_[n++] = s;
      }
    }
    shared_.resize(n);
    return shared_;
  }

  bool merge_round() {
    std::vector<Candidate> candidates;
    for (const auto& [a, b, saved] : shared()) {
      if (saved == 0 || !compatible(groups_[a], groups_[b])) continue;
      const bool same = reduces(groups_[a].space) == reduces(groups_[b].space);
      candidates.push_back({same, saved, static_cast<int>(b - a), a, b});
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const auto& x, const auto& y) {
      return std::tuple(!x.same_kind, -x.saved, x.distance) <
             std::tuple(!y.same_kind, -y.saved, y.distance);
    });
    bool changed = false;
    for (const Candidate& c : candidates)
      changed |= merge(c.a, c.b);
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
    into.above = (into.above | from.above) & ~into.members;
    for (std::size_t g = 0; g < groups_.size(); ++g) {  // what waits for a part waits for the whole
      if (g == a || group_[g] != g || (groups_[g].above & into.members).none()) continue;
      groups_[g].above |= into.above | into.members;
    }
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
    for (std::size_t i = 0; i < pass_.size(); ++i)
      n += group_[i] == i ? 1 : 0;
    return n;
  }

  [[nodiscard]] std::size_t next_ready(const OpSet& done, const std::vector<bool>& emitted) const {
    for (std::size_t g = 0; g < pass_.size(); ++g) {
      if (group_[g] != g || emitted[g]) continue;
      if ((groups_[g].above & ~groups_[g].members & ~done).none()) return g;
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
        const int producer = producer_[index(t)];
        const bool outside =
            producer < 0 || !groups_[g].members[static_cast<std::size_t>(producer)];
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
  std::vector<Shared> shared_;
  std::vector<std::size_t> near_;
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
    for (const Execution& e : pass)
      out.push_back(single(graph, e));
    return out;
  }
  Fuser fuser(graph, pass, kept);
  fuser.merge_all();
  return fuser.kernels();
}

}  // namespace forerun

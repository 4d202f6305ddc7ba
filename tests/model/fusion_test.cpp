#include "model/fusion.hpp"

#include <doctest/doctest.h>

#include <set>

#include "tests/model/small_model.hpp"
#include "workloads/block_builder.hpp"

using namespace forerun;
using namespace forerun::test;

namespace {

constexpr Dims kRow{2, 8, 16};

/// Operators of one rank, added by hand, that run once in order.
class HandGraph {
 public:
  TensorId tensor(Dims dims = kRow) {
    Tensor t;
    t.name = "t";
    t.dims = dims;
    return graph_.add_tensor(t, {});
  }
  TensorId apply(OpSpace space, std::initializer_list<TensorId> inputs, Dims dims = kRow) {
    Operator op;
    op.space = space;
    op.inputs.assign(inputs.begin(), inputs.end());
    op.outputs = {tensor(dims)};
    pass_.push_back({graph_.add(op), false});
    return op.outputs[0];
  }
  TensorId pointwise(std::initializer_list<TensorId> inputs) {
    return apply(OpSpace::kPointwise, inputs);
  }

  /// Kernels where only `kept` outlive the pass.
  [[nodiscard]] std::vector<FusedKernel> fused(std::initializer_list<TensorId> kept,
                                               bool compiled = true) const {
    std::vector<bool> keep(static_cast<std::size_t>(graph_.graph().tensors()), false);
    for (const TensorId t : kept)
      keep[static_cast<std::size_t>(t.index())] = true;
    return fuse(graph_, pass_, keep, compiled);
  }

 private:
  PlacedGraph graph_{MeshDegrees{}};
  std::vector<Execution> pass_;
};

using Tensors = std::vector<TensorId>;

/// Operator indices by kernel.
std::vector<std::vector<int>> groups(const std::vector<FusedKernel>& kernels) {
  std::vector<std::vector<int>> out;
  for (const FusedKernel& k : kernels) {
    out.emplace_back();
    for (const Execution& e : k.ops)
      out.back().push_back(e.op.index());
  }
  return out;
}

using Groups = std::vector<std::vector<int>>;

}  // namespace

TEST_CASE("eager execution runs one kernel an operator") {
  HandGraph g;
  const TensorId x = g.tensor();
  const TensorId y = g.pointwise({g.pointwise({x})});
  CHECK(groups(g.fused({y}, false)) == Groups{{0}, {1}});
}

TEST_CASE("a chain of pointwise operators becomes one kernel that reads and writes its ends") {
  HandGraph g;
  const TensorId x = g.tensor();
  const TensorId y = g.pointwise({g.pointwise({g.pointwise({x})})});
  const std::vector<FusedKernel> kernels = g.fused({y});
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].reads == Tensors{x});
  CHECK(kernels[0].writes == Tensors{y});
}

TEST_CASE("a result that outlives the pass is written though its readers are fused") {
  HandGraph g;
  const TensorId x = g.tensor();
  const TensorId saved = g.pointwise({x});
  const TensorId y = g.pointwise({saved});
  const std::vector<FusedKernel> kernels = g.fused({saved, y});
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].writes == Tensors{saved, y});
}

TEST_CASE("operators that only share an input are fused, which reads it once") {
  HandGraph g;
  const TensorId x = g.tensor();
  const TensorId y = g.pointwise({x}), z = g.pointwise({x});
  const std::vector<FusedKernel> kernels = g.fused({y, z});
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].reads == Tensors{x});
}

TEST_CASE("a norm of elementary operators is one kernel") {
  // x^2, its mean over features, and x scaled by it: a row statistic does not end a kernel.
  HandGraph g;
  const TensorId x = g.tensor();
  const TensorId mean = g.apply(OpSpace::kRowReduction, {g.pointwise({x})}, {2, 8, 1});
  const TensorId y = g.pointwise({x, mean});
  const std::vector<FusedKernel> kernels = g.fused({y});
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].space == OpSpace::kRowReduction);
  CHECK(kernels[0].reads == Tensors{x});
  CHECK(kernels[0].writes == Tensors{y});
}

TEST_CASE("a sum over rows ends its kernel") {
  HandGraph g;
  const TensorId x = g.tensor();
  const TensorId sum = g.apply(OpSpace::kColumnReduction, {g.pointwise({x})}, {1, 1, 16});
  const TensorId y = g.pointwise({sum});
  CHECK(groups(g.fused({y})) == Groups{{0, 1}, {2}});
}

TEST_CASE("a library kernel is never fused") {
  HandGraph g;
  const TensorId x = g.tensor();
  const TensorId product = g.apply(OpSpace::kExtern, {g.pointwise({x})});
  const TensorId y = g.pointwise({product});
  CHECK(groups(g.fused({y})) == Groups{{0}, {1}, {2}});
}

TEST_CASE("no fusion makes a cycle through a kernel between") {
  // c reads a directly and through the library kernel b: a and c may not be one kernel.
  HandGraph g;
  const TensorId x = g.tensor();
  const TensorId a = g.pointwise({x});
  const TensorId b = g.apply(OpSpace::kExtern, {a});
  const TensorId c = g.pointwise({a, b});
  CHECK(groups(g.fused({c})) == Groups{{0}, {1}, {2}});
}

TEST_CASE("two fusions that would make a cycle together are not both done") {
  // a1 -> e1 -> b1 and b2 -> e2 -> a2; a1 and a2 share x, b1 and b2 share y. Either pair alone is
  // legal; both at once would put each kernel before the other.
  HandGraph g;
  const TensorId x = g.tensor(), y = g.tensor();
  const TensorId a1 = g.pointwise({x});
  const TensorId b2 = g.pointwise({y});
  const TensorId e1 = g.apply(OpSpace::kExtern, {a1});
  const TensorId e2 = g.apply(OpSpace::kExtern, {b2});
  const TensorId b1 = g.pointwise({y, e1});
  const TensorId a2 = g.pointwise({x, e2});
  CHECK(g.fused({a1, b1, a2, b2}).size() == 5);
}

TEST_CASE("fused kernels keep every operator, in an order that respects what each reads") {
  for (const BlockRequest& r : decoder_requests(all_meshes())) {
    CAPTURE(describe(r));
    const DifferentiatedBlock block =
        differentiate(build_block(r.kind, small_model(), r.options), r.degrees, r.autodiff);
    const BlockPasses passes = split_passes(block, r.recompute, r.compiled, r.save_list);
    for (const auto* pass : {&passes.forward, &passes.backward}) {
      std::set<int> made_here;
      for (const Execution& e : *pass) {
        for (const TensorId t : block.graph[e.op].outputs)
          made_here.insert(t.index());
      }
      std::multiset<int> ops;
      std::set<int> made;
      bool ordered = true, complete = true;
      for (const FusedKernel& kernel : fuse(block.graph, *pass, passes.saved, true)) {
        for (const TensorId t : kernel.reads) {
          ordered &= made_here.count(t.index()) == 0 || made.count(t.index()) == 1;
        }
        for (const Execution& e : kernel.ops) {
          ops.insert(e.op.index());
          for (const TensorId t : block.graph[e.op].inputs) {
            ordered &= made_here.count(t.index()) == 0 || made.count(t.index()) == 1;
          }
          for (const TensorId t : block.graph[e.op].outputs)
            made.insert(t.index());
        }
      }
      for (const Execution& e : *pass)
        complete &= ops.count(e.op.index()) == 1;
      CHECK(ordered);
      CHECK(complete);
      CHECK(ops.size() == pass->size());
    }
  }
}

TEST_CASE("fusing the same pass never makes more kernels or more traffic") {
  for (const BlockRequest& r : decoder_requests(all_meshes())) {
    CAPTURE(describe(r));
    const DifferentiatedBlock block =
        differentiate(build_block(r.kind, small_model(), r.options), r.degrees, r.autodiff);
    const BlockPasses passes = split_passes(block, r.recompute, r.compiled, r.save_list);
    for (const auto* pass : {&passes.forward, &passes.backward}) {
      const auto traffic = [&](const std::vector<FusedKernel>& kernels) {
        std::int64_t bytes = 0;
        for (const FusedKernel& k : kernels) {
          for (const TensorId t : k.reads)
            bytes += block.graph.local_bytes(t);
          for (const TensorId t : k.writes)
            bytes += block.graph.local_bytes(t);
        }
        return bytes;
      };
      const auto eager = fuse(block.graph, *pass, passes.saved, false);
      const auto compiled = fuse(block.graph, *pass, passes.saved, true);
      CHECK(eager.size() == pass->size());
      CHECK(compiled.size() < eager.size());
      CHECK(traffic(compiled) < traffic(eager));
    }
  }
}

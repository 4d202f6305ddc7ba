#include "tests/support/plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>

#include "base/yaml.hpp"
#include "model/forecaster.hpp"
#include "workloads/resolve.hpp"
#include "workloads/rules.hpp"
#include "workloads/run_file.hpp"

namespace forerun::test {
namespace {

/// The ways a stack can be asked to run the blocks: eager, compiled, fp8, async TP, loss parallel.
struct Execution {
  bool compile = false;
  Precision precision = Precision::kBf16;
  bool async_tp = false;
  LossKind loss = LossKind::kPlain;
};
constexpr Execution kExecutions[] = {
    {},
    {.compile = true},
    {.precision = Precision::kFp8Tensorwise},
    {.compile = true, .precision = Precision::kFp8Tensorwise},
    {.compile = true, .async_tp = true},
    {.compile = true, .precision = Precision::kFp8Tensorwise, .async_tp = true},
    {.compile = true, .loss = LossKind::kParallel},
};

bool wanted(const Plan& plan) {
  if (plan.async_tp && (plan.tp == 1 || !plan.sequence_parallel)) return false;
  if (plan.loss == LossKind::kParallel && plan.tp == 1) return false;
  if (plan.tp == 1 && plan.sequence_parallel) return false;
  if (plan.pp == 1 && plan.virtual_stages > 1) return false;
  const bool interleaved = plan.schedule == ScheduleKind::kInterleaved1F1B;
  return interleaved == (plan.virtual_stages > 1);
}

bool same_blocks(const Plan& a, const Plan& b) {
  const auto blocks = [](const Plan& p) {
    return std::tuple(p.sequence_length, p.micro_batch, p.tp, p.cp, p.sequence_parallel, p.compile,
                      p.precision, p.async_tp, p.loss, p.recompute);
  };
  return blocks(a) == blocks(b);
}

class Enumeration {
 public:
  Enumeration(const PlanSpace& space, PlanList& out) : space_(space), out_(out) {}

  void run() {
    for (const std::int64_t sequence : {4096, 8192}) {
      for (const int tp : {1, 2, 4, 8}) {
        for (const int cp : {1, 2, 4, 8}) {
          for (const std::int64_t micro_batch : {1, 2, 4}) {
            plan_.sequence_length = sequence;
            plan_.tp = tp;
            plan_.cp = cp;
            plan_.micro_batch = micro_batch;
            for (const bool sp : {true, false}) {
              plan_.sequence_parallel = sp;
              executions();
            }
          }
        }
      }
    }
  }

 private:
  void executions() {
    for (const Execution& e : kExecutions) {
      plan_.compile = e.compile;
      plan_.precision = e.precision;
      plan_.async_tp = e.async_tp;
      plan_.loss = e.loss;
      for (const Recompute r : {Recompute::kNone, Recompute::kSelectiveAttention,
                                Recompute::kSelectiveOp, Recompute::kFull}) {
        plan_.recompute = r;
        pipelines();
      }
    }
  }

  void pipelines() {
    for (const int pp : space_.pp) {
      const int model_parallel = plan_.tp * plan_.cp * pp;
      if (space_.gpus % model_parallel != 0) continue;
      plan_.pp = pp;
      plan_.dp_shard = space_.gpus / model_parallel;
      for (const ScheduleKind schedule :
           {ScheduleKind::kGpipe, ScheduleKind::k1F1B, ScheduleKind::kInterleaved1F1B}) {
        plan_.schedule = schedule;
        for (const int v : {1, 2}) {
          plan_.virtual_stages = v;
          batches();
        }
      }
    }
  }

  void batches() {
    for (const std::int64_t microbatches : {1, 4, 16, 64}) {
      plan_.global_batch = microbatches * plan_.micro_batch * plan_.dp_shard;
      for (const Reshard reshard : {Reshard::kDefault, Reshard::kAlways, Reshard::kNever}) {
        plan_.reshard = reshard;
        for (const int ep : space_.ep) {
          plan_.ep = ep;
          add();
        }
      }
    }
  }

  void add() {
    if (plan_.pp == 1 && plan_.schedule != ScheduleKind::k1F1B) return;
    if (!wanted(plan_) || first_broken(out_.scenario, plan_) != nullptr) return;
    if (unsupported_part(out_.scenario, plan_, out_.profile).empty()) out_.plans.push_back(plan_);
  }

  const PlanSpace& space_;
  PlanList& out_;
  Plan plan_;
};

}  // namespace

DataPath source_data() {
  return DataPath();
}

Job job_of(const std::string& yaml) {
  return resolve_unchecked(read_run(parse_yaml(yaml, "test.yaml")), source_data());
}

PlanList all_plans(const PlanSpace& space) {
  const Job job =
      job_of(fmt::format("cluster: {{name: {}, gpus: {}}}\nmodel: {}\nsoftware: {}\n"
                         "training: {{sequence_length: 8192, micro_batch: 1, global_batch: {}}}\n",
                         space.cluster, space.gpus, space.model, space.software, space.gpus));
  PlanList out{job.scenario, load_profile(source_data(), job.scenario.cluster.gpu.name), {}};
  Enumeration(space, out).run();
  return out;
}

PlanList some_plans(const PlanSpace& space, std::size_t count, std::uint64_t seed) {
  PlanList list = all_plans(space);
  std::mt19937_64 random(seed);
  std::vector<Plan> chosen;
  std::size_t left = list.plans.size(), wanted = count;
  for (const Plan& plan : list.plans) {  // selection sampling: Knuth, algorithm S
    if (random() % left-- >= wanted) continue;
    chosen.push_back(plan);
    --wanted;
  }
  list.plans = std::move(chosen);
  return list;
}

PlanList sweep_plans(const PlanSpace& space, std::size_t count, std::uint64_t seed) {
  PlanList list = all_plans(space);
  std::vector<std::size_t> begins;  // of runs of plans with the same blocks
  for (std::size_t i = 0; i < list.plans.size(); ++i) {
    if (i == 0 || !same_blocks(list.plans[i - 1], list.plans[i])) begins.push_back(i);
  }
  begins.push_back(list.plans.size());
  std::mt19937_64 random(seed);
  std::vector<std::size_t> order(begins.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  std::size_t taken = 0, runs = 0;
  for (; runs < order.size() && taken < count; ++runs) {
    std::swap(order[runs], order[runs + random() % (order.size() - runs)]);
    taken += begins[order[runs] + 1] - begins[order[runs]];
  }
  order.resize(runs);
  std::sort(order.begin(), order.end());
  std::vector<Plan> chosen;
  for (const std::size_t r : order) {
    const auto at = [&](std::size_t i) {
      return list.plans.begin() + static_cast<std::ptrdiff_t>(i);
    };
    chosen.insert(chosen.end(), at(begins[r]), at(begins[r + 1]));
  }
  chosen.resize(std::min(chosen.size(), count));
  list.plans = std::move(chosen);
  return list;
}

std::vector<PlanList> benchmark_plans(std::size_t count, std::uint64_t seed) {
  const std::size_t third = count / 3;
  std::vector<PlanList> out;
  out.push_back(sweep_plans({.model = "llama3-8b", .gpus = 64}, third, seed));
  out.push_back(sweep_plans({.model = "llama3-70b", .gpus = 256}, third, seed + 1));
  out.push_back(sweep_plans({.model = "llama3-405b", .gpus = 512}, count - 2 * third, seed + 2));
  return out;
}

std::vector<PlanList> golden_plans() {
  std::vector<PlanList> out;
  std::uint64_t seed = 100;
  for (const PlanSpace& space : {
           PlanSpace{.model = "llama3-8b", .gpus = 8, .pp = {1, 2}},
           PlanSpace{.model = "llama3-8b", .gpus = 128},
           PlanSpace{.model = "llama3-70b", .gpus = 256},
           PlanSpace{.model = "llama3-70b", .gpus = 512, .cluster = "dgx-h100"},
           PlanSpace{.model = "llama3-405b", .gpus = 512},
           PlanSpace{.model = "llama3-405b", .gpus = 2048, .cluster = "dgx-h100"},
       }) {
    out.push_back(some_plans(space, 20, seed++));
  }
  return out;
}

std::string describe(const Plan& p) {
  return fmt::format(
      "seq {} mbs {} gbs {} {} tp {}{} cp {} pp {} x {} {} dp {} {} {}{}{} reshard {}",
      p.sequence_length, p.micro_batch, p.global_batch, to_text(p.precision), p.tp,
      p.sequence_parallel ? "+sp" : "", p.cp, p.pp, p.virtual_stages, to_text(p.schedule),
      p.dp_shard, to_text(p.recompute), p.compile ? "compiled" : "eager",
      p.async_tp ? " async" : "", p.loss == LossKind::kParallel ? " loss-parallel" : "",
      to_text(p.reshard));
}

std::string describe(const Scenario& scenario, const Plan& plan) {
  return fmt::format("{} on {} of {}: {}", scenario.model.name, scenario.cluster.gpus,
                     scenario.cluster.name, describe(plan));
}

}  // namespace forerun::test

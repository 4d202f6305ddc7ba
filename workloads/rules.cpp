#include "workloads/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "topology/span.hpp"
#include "workloads/stage_split.hpp"

namespace forerun {
namespace {

std::vector<std::string> divisors(std::int64_t n, std::int64_t most = 1 << 20) {
  std::vector<std::string> out;
  for (std::int64_t d = 1; d <= std::min(n, most); ++d) {
    if (n % d == 0) out.push_back(std::to_string(d));
  }
  return out;
}

/// "8184 and 8192": the multiples of `step` around `value`.
std::string multiples_around(std::int64_t value, std::int64_t step) {
  const std::int64_t below = value / step * step;
  return below > 0 ? fmt::format("{} and {}", below, below + step) : fmt::format("{}", step);
}

const Plan& plan(const RuleContext& c) {
  return c.plan;
}
const ModelSpec& model(const RuleContext& c) {
  return c.scenario.model;
}
const ClusterSpec& cluster(const RuleContext& c) {
  return c.scenario.cluster;
}

std::string degrees_text(const Plan& p) {
  std::string out;
  const std::array<std::pair<const char*, int>, 5> all{{{"dp_replicate", p.dp_replicate},
                                                        {"dp_shard", p.dp_shard},
                                                        {"cp", p.cp},
                                                        {"tp", p.tp},
                                                        {"pp", p.pp}}};
  for (const auto& [name, degree] : all) {
    if (degree > 1) out += fmt::format("{}{} {}", out.empty() ? "" : " x ", name, degree);
  }
  return out.empty() ? "all degrees 1" : out;
}

std::string degrees_problem(const RuleContext& c) {
  const Plan& p = plan(c);
  const std::int64_t others = p.gpus() / p.dp_shard, gpus = cluster(c).gpus;
  std::string hint;
  if (gpus % others == 0) {
    hint = fmt::format("; dp_shard {} fits", gpus / others);
  } else {
    hint = fmt::format("; the degrees without dp_shard multiply to {}, which does not divide {}",
                       others, gpus);
  }
  return fmt::format("{} = {} ranks on {} GPUs{}", degrees_text(p), p.gpus(), gpus, hint);
}

bool whole_nodes(const RuleContext& c) {
  const std::int64_t per_node = cluster(c).gpus_per_node.value;
  return cluster(c).gpus <= per_node || cluster(c).gpus % per_node == 0;
}

std::string legal_tp(const RuleContext& c, std::int64_t heads) {
  const std::int64_t per_node = cluster(c).gpus_per_node.value;
  std::vector<std::string> on_node;
  for (const std::string& d : divisors(heads)) {
    if (per_node % std::stoll(d) == 0) on_node.push_back(d);
  }
  return fmt::format("legal tp: {} ({} on nodes of {})", join(divisors(heads), " "),
                     join(on_node, " "), per_node);
}

bool interleaved_rounds(const RuleContext& c) {
  const Plan& p = plan(c);
  if (p.pp == 1 || p.schedule != ScheduleKind::kInterleaved1F1B) return true;
  const std::int64_t m = p.microbatches();
  return m % std::max<std::int64_t>(1, m / p.pp) == 0;
}

std::int64_t sequence_step(const Plan& p) {
  const std::int64_t by_cp = p.cp > 1 ? 2 * p.cp : 1;  // zigzag halves each rank's part
  return p.sequence_parallel && p.tp > 1 ? std::max<std::int64_t>(by_cp, 1) * p.tp : by_cp;
}

/// What ep divides into groups: see the run file's documentation.
std::int64_t ep_room(const RuleContext& c) {
  const Plan& p = plan(c);
  const std::int64_t room = std::int64_t{p.dp_shard} * p.cp * p.tp / p.etp;
  return p.zero_stage == 3 ? room : room * p.dp_replicate;
}

constexpr std::int64_t kNoExperts = 1;
std::int64_t experts(const RuleContext& c) {
  return model(c).moe() ? model(c).experts : kNoExperts;
}

std::string ep_problem(const RuleContext& c) {
  std::vector<std::string> legal;
  for (const std::string& d : divisors(experts(c))) {
    if (ep_room(c) % std::stoll(d) == 0) legal.push_back(d);
  }
  return fmt::format("found {}; {} experts over ranks of {}: legal ep {}", plan(c).ep, experts(c),
                     ep_room(c), join(legal, " "));
}

std::int64_t stage_layer_sum(const Plan& p) {
  std::int64_t sum = 0;
  for (int i = 0; i < p.stage_layers.count; ++i) {
    sum += p.stage_layers.layers[static_cast<std::size_t>(i)];
  }
  return sum;
}

/// Above all tensors of a microbatch together; up to this the bytes are counted in 64 bits.
constexpr double kMostBytes = 2e18;

double roughly_saved_bytes(const RuleContext& c) {
  const auto d = [](std::int64_t n) { return static_cast<double>(n); };
  const ModelSpec& m = model(c);
  const double scores =
      plan(c).attention == AttentionKernel::kUnfused ? d(m.heads) * d(plan(c).sequence_length) : 0;
  const double layer = 16 * d(m.hidden) + 8 * d(std::max(m.ffn_hidden, m.expert_ffn)) +
                       4 * d(m.head_dim) * d(m.heads + m.kv_heads) + scores;
  const double tokens = d(plan(c).micro_batch) * d(plan(c).sequence_length);
  return 4 * tokens * (d(m.layers) * layer + 2 * d(m.vocab));
}

const std::array kRules{
    Rule{"microbatch-size", "training.micro_batch",
         [](const RuleContext& c) { return roughly_saved_bytes(c) <= kMostBytes; },
         [](const RuleContext& c) {
           return fmt::format(
               "found {} sequences of {} tokens, whose tensors would take some {:.2g} "
               "bytes; at most {:.0g} are counted: lower micro_batch or "
               "sequence_length",
               plan(c).micro_batch, plan(c).sequence_length, roughly_saved_bytes(c), kMostBytes);
         }},
    Rule{"whole-nodes", "cluster.gpus", whole_nodes,
         [](const RuleContext& c) {
           const std::int64_t node = cluster(c).gpus_per_node.value;
           return fmt::format("found {}, not whole nodes of {} GPUs; nearest {}", cluster(c).gpus,
                              node, multiples_around(cluster(c).gpus, node));
         }},
    Rule{"degrees-by-gpus", "parallelism.dp_shard",
         [](const RuleContext& c) { return plan(c).gpus() == cluster(c).gpus; }, degrees_problem},
    Rule{"heads-by-kv", "model.kv_heads",
         [](const RuleContext& c) { return model(c).heads % model(c).kv_heads == 0; },
         [](const RuleContext& c) {
           return fmt::format("found {}; heads {} must be a multiple of it: legal {}",
                              model(c).kv_heads, model(c).heads,
                              join(divisors(model(c).heads), " "));
         }},
    Rule{"heads-by-tp", "parallelism.tp",
         [](const RuleContext& c) { return model(c).heads % plan(c).tp == 0; },
         [](const RuleContext& c) {
           return fmt::format("found {}; heads {} must be a multiple of it, {}", plan(c).tp,
                              model(c).heads, legal_tp(c, model(c).heads));
         }},
    Rule{"kv-heads-by-tp", "parallelism.tp",
         [](const RuleContext& c) {
           const std::int64_t kv = model(c).kv_heads, tp = plan(c).tp;
           return kv % tp == 0 || (c.scenario.software.kv_heads_replicated && tp % kv == 0);
         },
         [](const RuleContext& c) {
           return fmt::format("found {}; kv_heads {} must be a multiple of it in {}, {}",
                              plan(c).tp, model(c).kv_heads, c.scenario.software.name,
                              legal_tp(c, model(c).kv_heads));
         }},
    Rule{"stages-by-layers", "parallelism.pp",
         [](const RuleContext& c) {  // a run may state stages of embedding or loss alone
           return plan(c).stages() <= model(c).layers || plan(c).stage_layers.count > 0;
         },
         [](const RuleContext& c) {
           return fmt::format(
               "{} stages (pp {} x virtual_stages {}) for {} layers would leave some "
               "empty; at most {}",
               plan(c).stages(), plan(c).pp, plan(c).virtual_stages, model(c).layers,
               model(c).layers);
         }},
    Rule{"stage-layers", "parallelism.stage_layers",
         [](const RuleContext& c) {
           const Plan& p = plan(c);
           return p.stage_layers.count == 0 ||
                  (p.stage_layers.count == p.stages() && stage_layer_sum(p) == model(c).layers);
         },
         [](const RuleContext& c) {
           const Plan& p = plan(c);
           return fmt::format(
               "found {} stages with {} layers in all; {} stages and {} layers are "
               "wanted",
               p.stage_layers.count, stage_layer_sum(p), p.stages(), model(c).layers);
         }},
    Rule{"even-stages", "parallelism.pp",
         [](const RuleContext& c) {
           const bool even_wanted = c.scenario.software.stage_split == StageSplit::kMegatron;
           return !even_wanted || plan(c).stage_layers.count > 0 ||
                  model(c).layers % plan(c).stages() == 0;
         },
         [](const RuleContext& c) {
           return fmt::format(
               "{} layers over {} stages: {} wants equal stages; legal numbers of "
               "stages: {}",
               model(c).layers, plan(c).stages(), c.scenario.software.name,
               join(divisors(model(c).layers, 64), " "));
         }},
    Rule{"interleaved-stages", "parallelism.virtual_stages",
         [](const RuleContext& c) {
           const Plan& p = plan(c);
           return p.pp == 1 || p.schedule != ScheduleKind::kInterleaved1F1B || p.virtual_stages > 1;
         },
         [](const RuleContext&) {
           return std::string("found 1; interleaved-1f1b wants at least 2 virtual stages a rank");
         }},
    Rule{"plain-stages", "parallelism.virtual_stages",
         [](const RuleContext& c) {
           const Plan& p = plan(c);
           const bool plain =
               p.schedule == ScheduleKind::k1F1B || p.schedule == ScheduleKind::kGpipe;
           return p.pp == 1 || !plain || p.virtual_stages == 1;
         },
         [](const RuleContext& c) {
           return fmt::format("found {}; {} runs one stage a rank: 1, or schedule interleaved-1f1b",
                              plan(c).virtual_stages, to_text(plan(c).schedule));
         }},
    Rule{"batch-by-replicas", "training.global_batch",
         [](const RuleContext& c) {
           const Plan& p = plan(c);
           return p.global_batch % (p.micro_batch * p.data_parallel()) == 0;
         },
         [](const RuleContext& c) {
           const Plan& p = plan(c);
           const std::int64_t step = p.micro_batch * p.data_parallel();
           return fmt::format(
               "found {}, must be a multiple of micro_batch {} x data parallel {} = "
               "{}; nearest {}",
               p.global_batch, p.micro_batch, p.data_parallel(), step,
               multiples_around(p.global_batch, step));
         }},
    Rule{"interleaved-rounds", "training.global_batch", interleaved_rounds,
         [](const RuleContext& c) {
           return fmt::format(
               "{} microbatches: interleaved-1f1b wants a multiple of its rounds; "
               "nearest {}",
               plan(c).microbatches(), multiples_around(plan(c).microbatches(), plan(c).pp));
         }},
    Rule{"sequence-by-cp", "training.sequence_length",
         [](const RuleContext& c) { return plan(c).sequence_length % sequence_step(plan(c)) == 0; },
         [](const RuleContext& c) {
           const Plan& p = plan(c);
           const bool sp = p.sequence_parallel && p.tp > 1;
           const std::string parts =
               p.cp > 1 ? fmt::format("2 x cp {}{}", p.cp, sp ? fmt::format(" x tp {}", p.tp) : "")
                        : fmt::format("tp {} (sequence parallel)", p.tp);
           return fmt::format("found {}, must be a multiple of {} = {}; nearest {}",
                              p.sequence_length, parts, sequence_step(p),
                              multiples_around(p.sequence_length, sequence_step(p)));
         }},
    Rule{"top-k", "model.top_k",
         [](const RuleContext& c) { return !model(c).moe() || model(c).top_k <= model(c).experts; },
         [](const RuleContext& c) {
           return fmt::format("found {}, must be at most the {} experts", model(c).top_k,
                              model(c).experts);
         }},
    Rule{"experts-by-ep", "parallelism.ep",
         [](const RuleContext& c) {
           return !model(c).moe() || (experts(c) % plan(c).ep == 0 && ep_room(c) % plan(c).ep == 0);
         },
         ep_problem},
    Rule{"async-tp-compile", "execution.async_tp",
         [](const RuleContext& c) {
           const bool needed = c.scenario.software.compile_needed_for_async_tp;
           return !plan(c).async_tp || plan(c).compile || !needed;
         },
         [](const RuleContext& c) {
           return fmt::format(
               "async_tp needs compile in {}: set execution.compile: true, or "
               "async_tp: false",
               c.scenario.software.name);
         }},
};

}  // namespace

std::span<const Rule> plan_rules() {
  return kRules;
}

const Rule* first_broken(const Scenario& scenario, const Plan& plan) {
  const RuleContext context{scenario, plan};
  for (const Rule& rule : kRules) {
    if (!rule.holds(context)) return &rule;
  }
  return nullptr;
}

std::vector<std::string> plan_warnings(const Scenario& scenario, const Plan& p) {
  std::vector<std::string> out;
  const ModelSpec& model = scenario.model;
  const std::int64_t node = scenario.cluster.gpus_per_node.value;
  if (p.ep > 1 && !model.moe()) {
    out.push_back(fmt::format("parallelism.ep: {} has no effect without experts", p.ep));
  }
  if (p.pp == 1 && p.virtual_stages > 1) {
    out.push_back(
        fmt::format("parallelism.virtual_stages: {} has no effect with pp 1", p.virtual_stages));
  }
  if (p.tp == 1 && p.async_tp) out.push_back("execution.async_tp: no effect with tp 1");
  if (p.pp > 1 && p.microbatches() < p.pp) {
    const double m = static_cast<double>(p.microbatches());
    out.push_back(
        fmt::format("{} microbatch{} for {} stages: the bubble is {}/{} of the step ({:.0f}%)",
                    p.microbatches(), p.microbatches() == 1 ? "" : "es", p.pp, p.pp - 1,
                    p.pp - 1 + p.microbatches(), 100.0 * (p.pp - 1) / (p.pp - 1 + m)));
  }
  if (span_of(p.mesh(), {Axis::kTp}, scenario.cluster).nodes > 1) {
    out.push_back(fmt::format("parallelism.tp: groups of {} cross nodes of {} GPUs", p.tp, node));
  }
  const std::int64_t shards = std::int64_t{p.dp_shard} * p.cp;
  if (shards > model.hidden && p.zero_stage > 0) {
    out.push_back(
        fmt::format("parallelism.dp_shard: tensors of {} rows are cut over {} ranks; some "
                    "hold nothing but padding",
                    model.hidden, shards));
  }
  return out;
}

}  // namespace forerun

#include "study/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/mapping_reader.hpp"
#include "base/yaml.hpp"
#include "workloads/resolve.hpp"
#include "workloads/rules.hpp"

namespace forerun {
namespace {

constexpr std::int64_t kMostPoints = std::int64_t{1} << 40;

std::string value_text(const Node& node) {
  if (node.kind == Node::Kind::kScalar) return node.scalar;
  std::string out = "[";
  for (const Node& item : node.items)
    out += (out.size() > 1 ? ", " : "") + item.scalar;
  return out + "]";
}

bool shapes_scenario(const std::string& key) {
  return key.starts_with("cluster") || key.starts_with("model") || key.starts_with("software") ||
         key.starts_with("measured");
}

class Sweeper {
 public:
  Sweeper(const SweepRequest& request, const StudyContext& context)
      : request_(request), context_(context), at_(request.space.axes.size(), 0) {
    fixed_scenario_ = std::none_of(request.space.axes.begin(), request.space.axes.end(),
                                   [](const SweepAxis& a) { return shapes_scenario(a.key); });
  }

  SweepResult run() {
    const auto begin = std::chrono::steady_clock::now();
    check_values();
    for (const SweepAxis& axis : request_.space.axes)
      out_.keys.push_back(axis.key);
    out_.points_total = request_.space.points();
    for (std::int64_t done = 0; done < out_.points_total; ++done) {
      if (request_.progress && done % 64 == 0 && !request_.progress(done)) {
        out_.interrupted = true;
        break;
      }
      point();
      advance();
    }
    finish();
    out_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(out_);
  }

 private:
  /// The last axis turns fastest.
  void advance() {
    for (std::size_t i = at_.size(); i-- > 0;) {
      if (++at_[i] < request_.space.axes[i].values.size()) return;
      at_[i] = 0;
    }
  }

  [[nodiscard]] Node node_at(const std::vector<std::size_t>& at) const {
    Node node = request_.space.run;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const SweepAxis& axis = request_.space.axes[i];
      set_dotted(node, axis.key, axis.values[at[i]]);
    }
    return node;
  }

  /// A value that cannot be read is a fault of the sweep file, told before any point is forecast.
  void check_values() const {
    std::vector<std::size_t> at(at_.size(), 0);
    for (std::size_t i = 0; i < at.size(); ++i) {
      for (std::size_t value = 0; value < request_.space.axes[i].values.size(); ++value) {
        at[i] = value;
        read_run(node_at(at));
      }
      at[i] = 0;
    }
  }

  void point() {
    try {
      forecast(resolved(read_run(node_at(at_))));
    } catch (const Unsupported& error) {
      ++out_.rejected[error.what()];
    } catch (const InputError& error) {
      if (!of_this_file(error.place().source)) throw;  // a fault of a data file, not of the point
      ++out_.rejected["invalid: " + error.key()];
    }
  }

  [[nodiscard]] bool of_this_file(const std::string& source) const {
    const Node& run = request_.space.run;
    const bool own =
        source.empty() || source.starts_with("--set") || source == run.mark.place().source;
    return own ||
           std::any_of(
               request_.space.axes.begin(), request_.space.axes.end(), [&](const SweepAxis& axis) {
                 return !axis.values.empty() && axis.values[0].mark.place().source == source;
               });
  }

  Job resolved(const RunFile& run) {
    if (!fixed_scenario_) return resolve_unchecked(run, context_.data);
    if (!scenario_) scenario_ = resolve_unchecked(run, context_.data).scenario;
    return resolve_in(run, *scenario_);
  }

  void forecast(const Job& job) {
    if (const Rule* broken = first_broken(job.scenario, job.plan)) {
      ++out_.rejected["invalid: " + std::string(broken->id)];
      return;
    }
    Forecaster& forecaster = forecaster_for(job.scenario);
    const std::string missing = unsupported_part(job.scenario, job.plan, *profile_);
    if (!missing.empty()) {
      ++out_.rejected["unsupported: " + missing];
      return;
    }
    ++out_.points_valid;
    const Metrics& m = forecaster.evaluate(job.plan);
    ++out_.points_forecast;
    if (!m.fits) {
      ++out_.rejected["does not fit"];
      return;
    }
    keep({values(), m, job});
  }

  Forecaster& forecaster_for(const Scenario& scenario) {
    if (forecaster_ && fixed_scenario_) return *forecaster_;
    profile_ = std::make_unique<Profile>(load_profile(context_.data, scenario.cluster.gpu.name));
    forecaster_ = std::make_unique<Forecaster>(scenario, *profile_);
    return *forecaster_;
  }

  [[nodiscard]] std::vector<std::string> values() const {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < at_.size(); ++i) {
      out.push_back(value_text(request_.space.axes[i].values[at_[i]]));
    }
    return out;
  }

  static bool faster(const SweepPoint& a, const SweepPoint& b) {
    return a.metrics.tokens_per_second_gpu > b.metrics.tokens_per_second_gpu;
  }

  void keep(const SweepPoint& p) {
    const auto at = std::upper_bound(out_.top.begin(), out_.top.end(), p, faster);
    out_.top.insert(at, p);
    if (static_cast<int>(out_.top.size()) > request_.top) out_.top.pop_back();
    keep_if_undominated(p);
  }

  /// Pareto set over speed and reserved memory, by rising memory.
  void keep_if_undominated(const SweepPoint& p) {
    const auto dominates = [](const SweepPoint& a, const SweepPoint& b) {
      return a.metrics.memory.reserved <= b.metrics.memory.reserved &&
             a.metrics.tokens_per_second_gpu >= b.metrics.tokens_per_second_gpu;
    };
    for (const SweepPoint& kept : out_.pareto) {
      if (dominates(kept, p)) return;
    }
    std::erase_if(out_.pareto, [&](const SweepPoint& kept) { return dominates(p, kept); });
    const auto at = std::upper_bound(out_.pareto.begin(), out_.pareto.end(), p,
                                     [](const SweepPoint& a, const SweepPoint& b) {
                                       return a.metrics.memory.reserved < b.metrics.memory.reserved;
                                     });
    out_.pareto.insert(at, p);
  }

  void finish() {
    if (out_.top.empty()) return;
    PredictRequest best;
    best.job = out_.top.front().job;
    out_.best = predict(best, context_).forecast;
  }

  const SweepRequest& request_;
  const StudyContext& context_;
  std::vector<std::size_t> at_;
  bool fixed_scenario_ = false;
  std::optional<Scenario> scenario_;
  std::unique_ptr<Profile> profile_;
  std::unique_ptr<Forecaster> forecaster_;
  SweepResult out_;
};

Node read_base_run(const Node& node) {
  return node.kind == Node::Kind::kScalar ? read_yaml_file(node.scalar) : node;
}

}  // namespace

std::int64_t SweepSpace::points() const {
  std::int64_t n = 1;
  for (const SweepAxis& axis : axes) {
    n *= static_cast<std::int64_t>(axis.values.size());
    if (n > kMostPoints) {
      throw InputError(run.mark.place(), "space", "more than 2^40 points");
    }
  }
  return n;
}

SweepSpace read_sweep(const Node& root) {
  const MappingReader file(root, "", {"run", "space"});
  SweepSpace space;
  space.run = read_base_run(file.need("run"));
  const Node& axes = file.need("space");
  if (axes.kind != Node::Kind::kMapping) {
    throw InputError(axes.mark.place(), "space",
                     "found " + describe(axes) + ", a mapping of dotted keys to lists is wanted");
  }
  for (const Node::Entry& entry : axes.entries) {
    const Node& values = entry.value;
    if (values.kind != Node::Kind::kSequence || values.items.empty()) {
      throw InputError(entry.key_mark.place(), "space." + entry.key,
                       "found " + describe(values) + ", a list of values is wanted");
    }
    space.axes.push_back({entry.key, values.items});
  }
  return space;
}

SweepResult sweep(const SweepRequest& request, const StudyContext& context) {
  return Sweeper(request, context).run();
}

}  // namespace forerun

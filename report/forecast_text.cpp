#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "base/units.hpp"
#include "report/report.hpp"

namespace forerun {
namespace {

using Out = std::back_insert_iterator<std::string>;

void headline(const Forecast& f, Out out) {
  const Job& job = f.job;
  const Plan& p = job.plan;
  const std::string name = job.scenario.model.name;
  fmt::format_to(out, "{} on {} x {}, {}\n", name, job.scenario.cluster.gpus,
                 job.scenario.cluster.gpu.name, job.scenario.software.name);
  fmt::format_to(out,
                 "  dp_shard {}, tp {}, cp {}, pp {}; {} microbatch{} of {} x {} tokens; {}, "
                 "recompute {}, {}\n\n",
                 p.dp_shard, p.tp, p.cp, p.pp, p.microbatches(), p.microbatches() == 1 ? "" : "es",
                 p.micro_batch, p.sequence_length, to_text(p.precision), to_text(p.recompute),
                 p.compile ? "compiled" : "eager");
}

void numbers(const Forecast& f, Out out) {
  const auto line = [&](const char* what, const Interval& i, const char* unit, int digits) {
    fmt::format_to(out, "  {:<16}{:>10.{}f} {:<12} (90%: {:.{}f} to {:.{}f})\n", what, i.value,
                   digits, unit, i.low, digits, i.high, digits);
  };
  line("step time", f.step_time, "s", 3);
  line("tokens/s/GPU", f.tokens_s_gpu, "", 0);
  line("model TFLOP/s", f.tflops_gpu, "a GPU", 0);
  line("MFU", {100 * f.mfu.value, 100 * f.mfu.low, 100 * f.mfu.high}, "%", 1);
  line("peak reserved", f.peak_mem, "GiB", 1);
}

void fit(const Forecast& f, Out out) {
  const GpuSpec& gpu = f.job.scenario.cluster.gpu;
  const double capacity = gpu.memory.value.value() / kGiB;
  const double device = f.metrics.memory.device / kGiB;
  if (f.metrics.fits) {
    fmt::format_to(out, "  fits: {:.1f} of {:.1f} GiB with contexts (probability {:.0f}%)\n",
                   device, capacity, 100 * f.p_fits);
    return;
  }
  fmt::format_to(out, "  DOES NOT FIT: {:.1f} GiB short of {:.1f} (needs {:.1f} with contexts)\n",
                 device - capacity, capacity, device);
  const auto largest = std::max_element(f.live_at_peak.begin(), f.live_at_peak.end());
  const auto component = static_cast<MemoryComponent>(largest - f.live_at_peak.begin());
  fmt::format_to(out, "  largest at the peak of rank {}: {}, {:.1f} GiB\n", f.metrics.fullest_rank,
                 to_text(component), static_cast<double>(*largest) / kGiB);
}

void breakdown(const Forecast& f, Out out) {
  fmt::format_to(out, "\n  where the step goes (rank that ends last)\n");
  for (std::size_t c = 0; c < kCategories; ++c) {
    if (f.breakdown[c] < 5e-7 * f.metrics.step_seconds) continue;
    fmt::format_to(out, "    {:<14}{:>9.3f} s {:>5.1f}%\n", to_text(static_cast<Category>(c)),
                   f.breakdown[c], 100 * f.breakdown[c] / f.metrics.step_seconds);
  }
}

void memory(const Forecast& f, Out out) {
  fmt::format_to(out, "\n  what is live at the peak of rank {} ({:.1f} GiB, {})\n",
                 f.metrics.fullest_rank, f.metrics.memory.allocated / kGiB, f.peak_where);
  for (std::size_t c = 0; c < kMemoryComponents; ++c) {
    const double gib = static_cast<double>(f.live_at_peak[c]) / kGiB;
    if (gib < 0.005) continue;
    fmt::format_to(out, "    {:<14}{:>9.2f} GiB\n", to_text(static_cast<MemoryComponent>(c)), gib);
  }
}

void notes(const Forecast& f, Out out) {
  for (const std::string& warning : f.warnings)
    fmt::format_to(out, "\n  warning: {}", warning);
  if (!f.warnings.empty()) fmt::format_to(out, "\n");
  if (f.assumptions.empty()) return;
  fmt::format_to(out, "\n  assumed\n");
  for (const Assumption& a : f.assumptions) {
    fmt::format_to(out, "    {} = {} ({})\n", a.key, a.value, a.why);
  }
  if (!f.top_assumption.empty()) {
    fmt::format_to(out, "    moves the answer most: {}\n", f.top_assumption);
  }
}

}  // namespace

std::string forecast_text(const Forecast& f) {
  std::string text;
  const Out out(text);
  headline(f, out);
  numbers(f, out);
  fit(f, out);
  breakdown(f, out);
  memory(f, out);
  notes(f, out);
  fmt::format_to(out, "\n  profile {} ({}), software {} ({}), engine {}\n", f.profile_id,
                 f.profile_date, f.job.scenario.software.name, f.job.scenario.software.date,
                 f.engine);
  return text;
}

std::string version_text() {
  return "forerun " FORERUN_VERSION;
}

}  // namespace forerun

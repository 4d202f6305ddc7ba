#include "report/json.hpp"
#include "report/report.hpp"
#include "workloads/stage_split.hpp"

namespace forerun {
namespace {

double gib(double bytes) {
  return bytes / kGiB;
}

void put_memory(Json& out, const RankMemory& m) {
  out["reserved_gib"] = gib(m.reserved);
  out["allocated_gib"] = gib(m.allocated);
  out["active_gib"] = gib(m.allocated);  // no block is freed late, so active is allocated
  out["device_gib"] = gib(m.device);
  out["resident_gib"] = gib(m.resident);
}

Json input_object(const Job& job) {
  Json out = run_object(job);
  const Plan& p = job.plan;
  Json derived;
  derived["gpus"] = job.scenario.cluster.gpus;
  derived["nodes"] = job.scenario.cluster.nodes;
  derived["dp"] = p.data_parallel();
  derived["microbatches"] = p.microbatches();
  derived["layers_per_stage"] = p.stages() > 1
                                    ? layers_per_stage(job.scenario, p)
                                    : std::vector<int>{static_cast<int>(job.scenario.model.layers)};
  const ParameterCount count = count_parameters(job.scenario.model);
  derived["parameters_total"] = count.total;
  derived["parameters_active"] = count.active;
  out["derived"] = derived;
  return out;
}

Json fit_object(const Forecast& f) {
  const double capacity = f.job.scenario.cluster.gpu.memory.value.value();
  Json out;
  out["gpu_memory_gib"] = gib(capacity);
  out["margin_gib"] = gib(capacity - f.metrics.memory.device);
  out["fullest_rank"] = f.metrics.fullest_rank;
  out["peak_at"] = f.peak_where;
  return out;
}

}  // namespace

Json forecast_object(const Forecast& f) {
  Json out;
  put_interval(out, "step_time_s", f.step_time);
  put_interval(out, "tokens_s_gpu", f.tokens_s_gpu);
  put_interval(out, "tflops_gpu", f.tflops_gpu);
  put_interval(out, "mfu", f.mfu);
  put_interval(out, "peak_mem_gib", f.peak_mem);
  put_memory(out, f.metrics.memory);
  out["fits"] = f.metrics.fits;
  out["p_fits"] = finite(f.p_fits);
  out["fit"] = fit_object(f);
  out["tflops_gpu_full_attention"] = finite(f.model_flops_full_gpu / 1e12);
  out["tflops_gpu_hardware"] = finite(f.hardware_flops_gpu / 1e12);
  for (std::size_t c = 0; c < kCategories; ++c) {
    out["breakdown_s"][std::string(to_text(static_cast<Category>(c)))] = finite(f.breakdown[c]);
  }
  for (std::size_t c = 0; c < kMemoryComponents; ++c) {
    out["memory_gib"][std::string(to_text(static_cast<MemoryComponent>(c)))] =
        gib(static_cast<double>(f.live_at_peak[c]));
  }
  out["stages"] = Json::array();
  for (const StageForecast& s : f.stages) {
    Json stage{{"stage", s.stage},
               {"rank", s.rank},
               {"layers", s.layers},
               {"end_s", finite(s.end_seconds)}};
    put_memory(stage, f.ranks[static_cast<std::size_t>(s.rank)]);
    out["stages"].push_back(stage);
  }
  out["warnings"] = f.warnings;
  out["assumptions"] = Json::array();
  for (const Assumption& a : f.assumptions) {
    out["assumptions"].push_back({{"key", a.key}, {"value", a.value}, {"why", a.why}});
  }
  out["top_assumption"] = f.top_assumption;
  out["engine"] = f.engine;
  if (!f.event_fingerprint.empty()) out["event_fingerprint"] = f.event_fingerprint;
  out["profile"] = {{"id", f.profile_id}, {"date", f.profile_date}};
  const SoftwareStack& software = f.job.scenario.software;
  out["software"] = {{"id", software.name}, {"date", software.date}};
  out["input"] = input_object(f.job);
  return out;
}

std::string forecast_json(const Forecast& forecast) {
  Json out;
  out["schema_version"] = kSchemaVersion;
  out["status"] = "ok";
  out.update(forecast_object(forecast));
  return document(out);
}

std::string status_json(std::string_view status) {
  Json out;
  out["status"] = status;
  out["schema_version"] = kSchemaVersion;
  return document(out);
}

}  // namespace forerun

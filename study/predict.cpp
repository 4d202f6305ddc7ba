#include "study/predict.hpp"

#include <fmt/format.h>

#include "sim/engine.hpp"
#include "sim/program_json.hpp"
#include "study/assumptions.hpp"

namespace forerun {
namespace {

void simulate_into(Forecaster& forecaster, const Plan& plan, PredictResult& out, bool trace) {
  const Program& program = forecaster.program(plan);
  if (trace) out.trace.emplace();
  const SimResult result = simulate(program, trace ? &*out.trace : nullptr);
  out.forecast.metrics = forecaster.measure(plan, result.step_seconds, result.memory);
  for (std::size_t s = 0; s < out.forecast.stages.size(); ++s) {
    out.forecast.stages[s].end_seconds = result.stage_end[s];
  }
  out.forecast.engine = to_text(EngineKind::kDes);
  out.forecast.event_fingerprint = fmt::format("{:016x}", result.fingerprint);
}

}  // namespace

PredictResult predict(const PredictRequest& request, const StudyContext& context) {
  const Job& job = request.job;
  const Profile profile = load_profile(context.data, job.scenario.cluster.gpu.name);
  const std::string missing = unsupported_part(job.scenario, job.plan, profile);
  if (!missing.empty()) throw Unsupported(missing);
  Forecaster forecaster(job.scenario, profile, request.options);
  PredictResult out;
  out.forecast = forecaster.explain(job);
  if (request.program) out.program_json = program_json(forecaster.program(job.plan));
  if (request.engine == EngineKind::kDes || request.trace) {
    simulate_into(forecaster, job.plan, out, request.trace);
  }
  if (request.rank_assumptions) {
    out.forecast.top_assumption = top_assumption(forecaster, profile, job);
  }
  context.residuals.apply(out.forecast);
  return out;
}

}  // namespace forerun

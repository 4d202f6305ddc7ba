#include <spdlog/spdlog.h>

#include "cli/commands.hpp"
#include "report/report.hpp"
#include "study/compare.hpp"
#include "study/require.hpp"
#include "workloads/resolve.hpp"

namespace forerun {
namespace {

DataPath data_of(const CommonOptions& common) {
  return DataPath({common.data.begin(), common.data.end()});
}

void refuse_unmodelled(const PredictOptions& o) {
  if (o.network != "none") throw Unsupported("--network " + o.network);
  if (!o.anchor.empty()) throw Unsupported("--anchor");
  if (o.why) throw Unsupported("--why");
}

}  // namespace

Exit run_predict(const PredictOptions& o) {
  const StudyContext context(data_of(o.run.common));
  PredictRequest request;
  request.job = resolve(load_run(o.run.runs.front(), o.run.sets), context.data);
  refuse_unmodelled(o);
  request.engine = o.engine;
  request.trace = !o.trace.empty();
  request.program = !o.program.empty();
  const PredictResult result = predict(request, context);
  const bool met = o.require.empty() || holds(o.require, result.forecast);
  if (result.trace) write_answer(to_chrome_json(*result.trace), o.trace);
  if (request.program) write_answer(result.program_json, o.program);
  write_answer(o.run.common.json ? forecast_json(result.forecast) : forecast_text(result.forecast),
               o.run.common.out);
  if (met) return Exit::kAnswered;
  spdlog::warn("not met: {}", o.require);
  return Exit::kNotMet;
}

Exit run_compare(const PredictOptions& o) {
  const StudyContext context(data_of(o.run.common));
  CompareRequest request;
  request.engine = o.engine;
  for (const std::string& path : o.run.runs) {
    request.jobs.push_back(resolve(load_run(path, o.run.sets), context.data));
    request.names.push_back(path);
  }
  const CompareResult result = compare(request, context);
  write_answer(o.run.common.json ? compare_json(result) : compare_text(result), o.run.common.out);
  return Exit::kAnswered;
}

}  // namespace forerun

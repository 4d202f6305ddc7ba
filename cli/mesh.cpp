#include "cli/commands.hpp"
#include "report/report.hpp"
#include "workloads/resolve.hpp"

namespace forerun {

Exit run_mesh(const RunOptions& o) {
  const DataPath data({o.common.data.begin(), o.common.data.end()});
  const Job job = resolve(load_run(o.runs.front(), o.sets), data);
  const MeshResult result = describe_mesh(job);
  write_answer(o.common.json ? mesh_json(result) : mesh_text(result), o.common.out);
  return Exit::kAnswered;
}

Exit run_model(const ModelOptions& o) {
  const DataPath data({o.common.data.begin(), o.common.data.end()});
  const ModelSpec model = load_model(data, o.model, {"", 0, 0}, "model");
  write_answer(o.common.json ? model_json(model) : model_text(model), o.common.out);
  return Exit::kAnswered;
}

}  // namespace forerun

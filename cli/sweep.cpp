#include <unistd.h>

#include <atomic>
#include <csignal>
#include <iostream>

#include "base/error.hpp"
#include "base/yaml.hpp"
#include "cli/commands.hpp"
#include "report/report.hpp"

namespace forerun {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

void on_interrupt(int) {
  interrupted = true;
}

/// Progress on a terminal; stops where the user asked to.
bool progress(std::int64_t done, std::int64_t total) {
  static const bool terminal = ::isatty(STDERR_FILENO) != 0;
  if (terminal) std::cerr << "\r" << done << " of " << total << " points" << std::flush;
  return !interrupted;
}

}  // namespace

Exit run_sweep(const SweepOptions& o) {
  if (o.run.common.out.ends_with(".sqlite"))
    throw Unsupported("--out as .sqlite; .csv and .jsonl are written");
  const StudyContext context(DataPath({o.run.common.data.begin(), o.run.common.data.end()}));
  SweepRequest request;
  const Node root = read_yaml_file(o.run.runs.front());
  request.space = read_sweep(root);
  for (const std::string& set : o.run.sets)
    apply_set(request.space.run, set);
  request.top = o.top;
  const std::int64_t total = request.space.points();
  request.progress = [&](std::int64_t done) { return progress(done, total); };
  std::signal(SIGINT, on_interrupt);
  const SweepResult result = sweep(request, context);
  if (::isatty(STDERR_FILENO) != 0) std::cerr << "\r\033[K";
  const std::string& out = o.run.common.out;
  const bool csv = out.ends_with(".csv"), jsonl = out.ends_with(".jsonl");
  if (csv) write_answer(sweep_csv(result), out);
  if (jsonl) write_answer(sweep_jsonl(result), out);
  write_answer(o.run.common.json ? sweep_json(result) : sweep_text(result),
               csv || jsonl ? "" : out);
  return result.interrupted ? Exit::kInterrupted : Exit::kAnswered;
}

}  // namespace forerun

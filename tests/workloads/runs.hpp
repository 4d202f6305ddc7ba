#pragma once

// Runs to vary: a small text and settings on top, as a command line gives them.

#include <string>
#include <vector>

#include "base/data_path.hpp"
#include "tests/support/plans.hpp"
#include "workloads/resolve.hpp"
#include "workloads/run_file.hpp"

namespace forerun::test {

using Sets = std::vector<std::string>;

/// Llama-3.1-8B on 64 GPUs with nothing said of the plan.
inline const std::string kPlainRun =
    "cluster: {name: grand-teton-h100-95gb, gpus: 64}\n"
    "model: llama3-8b\n"
    "training: {sequence_length: 8192, micro_batch: 1, global_batch: 64}\n"
    "software: torchtitan-2024-12\n";

inline RunFile run_of(const Sets& sets = {}, const std::string& text = kPlainRun) {
  return read_run_text(text, "run.yaml", sets);
}

inline Job resolved(const Sets& sets = {}, const std::string& text = kPlainRun) {
  return resolve_unchecked(run_of(sets, text), source_data());
}

/// Resolves and checks the rules.
inline Job checked(const Sets& sets = {}, const std::string& text = kPlainRun) {
  return resolve(run_of(sets, text), source_data());
}

/// The assumption made about a key; one with an empty value where none was.
inline Assumption assumed(const Job& job, const std::string& key) {
  for (const Assumption& a : job.assumptions) {
    if (a.key == key) return a;
  }
  return {};
}

}  // namespace forerun::test

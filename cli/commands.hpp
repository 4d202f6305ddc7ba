#pragma once

// The verbs: options in, exit code out. Arguments are bound to options in arguments.cpp alone.

#include <cstdint>
#include <string>
#include <vector>

#include "study/predict.hpp"

namespace forerun {

/// Exit codes of the command line.
enum class Exit : int {
  kAnswered = 0,  ///< also "does not fit"
  kOurFault = 1,
  kWrongInput = 2,  ///< also what is not modelled
  kNotMet = 3,      ///< --require does not hold
  kInterrupted = 130,
};

/// What every verb takes.
struct CommonOptions {
  bool json = false;
  std::vector<std::string> data;  ///< folders of the user's own, searched first
  std::string out;                ///< file for the answer; empty: standard output
  std::uint64_t seed = 1;
  int verbosity = 0;  ///< -q: -1, -v: 1
};

struct RunOptions {
  CommonOptions common;
  std::vector<std::string> runs;
  std::vector<std::string> sets;
};

struct PredictOptions {
  RunOptions run;
  EngineKind engine = EngineKind::kAnalytic;
  std::string network = "none";
  std::string trace, program, require, anchor;
  bool why = false;
};

struct SweepOptions {
  RunOptions run;
  int top = 10;
  int jobs = 1;             ///< threads at most; one is used
  bool exhaustive = false;  ///< every valid point in full, which is how it is done anyway
};

struct ValidateOptions {
  CommonOptions common;
  std::string table;
  std::string pairs;
  std::string residuals;
  EngineKind engine = EngineKind::kAnalytic;
  bool use_measured_network = false;
  std::string only;  ///< regular expression; rows whose id matches
  int worst = 0;     ///< how many of the largest errors are listed
};

struct ModelOptions {
  CommonOptions common;
  std::string model;
};

Exit run_predict(const PredictOptions& options);
Exit run_compare(const PredictOptions& options);
Exit run_sweep(const SweepOptions& options);
Exit run_mesh(const RunOptions& options);
Exit run_validate(const ValidateOptions& options);
Exit run_model(const ModelOptions& options);

/// Writes an answer to standard output, or to a file. Throws InputError where it cannot.
void write_answer(const std::string& text, const std::string& path);

}  // namespace forerun

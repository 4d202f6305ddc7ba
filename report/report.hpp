#pragma once

// Results to text, JSON and CSV. Nothing is computed here.

#include <string>
#include <string_view>
#include <vector>

#include "calibration/score.hpp"
#include "calibration/validate.hpp"
#include "study/compare.hpp"
#include "study/mesh.hpp"
#include "study/predict.hpp"
#include "study/sweep.hpp"

namespace forerun {

/// Version of the JSON documents; keys are added and never renamed.
inline constexpr int kSchemaVersion = 1;

std::string forecast_json(const Forecast& forecast);
std::string forecast_text(const Forecast& forecast);

std::string compare_json(const CompareResult& result);
std::string compare_text(const CompareResult& result);

std::string sweep_json(const SweepResult& result);
std::string sweep_text(const SweepResult& result);
/// The listed points as a table, or a JSON object a line.
std::string sweep_csv(const SweepResult& result);
std::string sweep_jsonl(const SweepResult& result);

std::string mesh_json(const MeshResult& result);
std::string mesh_text(const MeshResult& result);

std::string model_json(const ModelSpec& model);
std::string model_text(const ModelSpec& model);

/// The table that `validate -o` writes.
std::string validation_csv(const std::vector<ValidatedRow>& rows);
/// `worst`: how many of the largest errors are listed.
std::string score_text(const Score& score, int worst = 0);
std::string score_json(const Score& score);

/// {"status": "unsupported: ...", "schema_version": ...} and the like.
std::string status_json(std::string_view status);

std::string version_text();

}  // namespace forerun

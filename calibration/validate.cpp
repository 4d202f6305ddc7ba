#include "calibration/validate.hpp"

#include <algorithm>
#include <map>

#include "base/contract.hpp"
#include "calibration/score.hpp"
#include "workloads/resolve.hpp"

namespace forerun {
namespace {

double memory_of(const RankMemory& memory, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kReserved:
      return memory.reserved;
    case MemoryKind::kAllocated:
    case MemoryKind::kActive:
    case MemoryKind::kTheoretical:
      return memory.allocated;
    case MemoryKind::kDevice:
      return memory.device;
  }
  return memory.reserved;
}

Interval printed_memory(const Forecast& f, const RunsRow& row, const Residuals& residuals) {
  const RankMemory& rank = row.last_rank ? f.ranks.back() : f.metrics.memory;
  const double gib = memory_of(rank, row.memory_kind) / kGiB;
  const Spread& spread = residuals.of(f.job.scenario.software.name).memory;
  return {gib, gib * std::min(1.0, spread.low), gib * std::max(1.0, spread.high)};
}

ValidatedRow validate_row(const CsvTable& table, const CsvTable::Row& cells, const DataPath& data,
                          const Residuals& residuals, const ValidateRequest& request) {
  ValidatedRow out;
  out.id = std::string(table.cell(cells, "id"));
  out.place = table.place(cells);
  try {
    const RunsRow row = read_runs_row(table, cells, data, request.read);
    Job job = resolve(row.run, data);
    job.assumptions.insert(job.assumptions.begin(), row.assumptions.begin(), row.assumptions.end());
    Forecast forecast = request.predictor(job);
    out.peak_mem_gib = printed_memory(forecast, row, residuals);
    out.forecast = std::move(forecast);
    out.status = "ok";
  } catch (const Unsupported& error) {
    out.status = error.what();
  } catch (const InputError& error) {
    out.status = "invalid: " + (error.key().empty() ? "" : error.key() + ": ") + error.problem();
  }
  return out;
}

}  // namespace

std::vector<ValidatedRow> validate(const CsvTable& table, const DataPath& data,
                                   const Residuals& residuals, const ValidateRequest& request) {
  for (const char* column : {"id", "gpus", "seq_len"}) {
    if (!table.has(column)) {
      throw InputError({table.name(), 1, 0}, column, "the table of runs has no such column");
    }
  }
  std::vector<ValidatedRow> out;
  for (const CsvTable::Row& row : table.rows()) {
    out.push_back(validate_row(table, row, data, residuals, request));
  }
  return out;
}

Residuals residuals_of(const CsvTable& table, const std::vector<ValidatedRow>& rows) {
  FR_ASSERT(rows.size() == table.rows().size());
  struct Ratios {
    std::vector<double> speed, memory;
  };
  std::map<std::string, Ratios> stacks;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const CsvTable::Row& cells = table.rows()[i];
    if (!rows[i].forecast || table.cell(cells, "suspect") == "1") continue;
    const Forecast& f = *rows[i].forecast;
    for (const std::string& stack : {std::string("all"), f.job.scenario.software.name}) {
      Ratios& r = stacks[stack];
      if (const auto tokens = measured_number(table.cell(cells, "tokens_s_gpu"))) {
        r.speed.push_back(*tokens / f.metrics.tokens_per_second_gpu);
      } else if (const auto seconds = measured_number(table.cell(cells, "step_time_s"))) {
        r.speed.push_back(f.metrics.step_seconds / *seconds);
      }
      const auto memory = measured_number(table.cell(cells, "peak_mem_gib"));
      const bool theory = table.cell(cells, "peak_mem_kind") == "theoretical";
      if (memory && !theory) r.memory.push_back(*memory / rows[i].peak_mem_gib.value);
    }
  }
  Residuals out;
  for (const auto& [stack, r] : stacks) {
    out.set(stack, {spread_of(r.speed), spread_of(r.memory)});
  }
  return out;
}

}  // namespace forerun

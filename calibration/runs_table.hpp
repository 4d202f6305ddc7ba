#pragma once

// Tables of published runs (columns in docs/formats.md): one row a run, as a RunFile. Measured
// columns are never read for a forecast.

#include <optional>
#include <string>
#include <vector>

#include "base/csv.hpp"
#include "base/data_path.hpp"
#include "workloads/job.hpp"

namespace forerun {

/// Which memory number a row wants to see beside its own.
enum class MemoryKind : std::uint8_t { kReserved, kAllocated, kActive, kDevice, kTheoretical };
constexpr auto enum_texts(MemoryKind) {
  return std::array<std::string_view, 5>{"reserved", "allocated", "active", "nvidia-smi",
                                         "theoretical"};
}
FR_CHECK_ENUM(MemoryKind, MemoryKind::kTheoretical);

struct RunsRow {
  std::string id;
  RunFile run;
  MemoryKind memory_kind = MemoryKind::kReserved;
  bool last_rank = false;               ///< the row's numbers are of the last pipeline rank
  std::vector<Assumption> assumptions;  ///< made in reading the row
};

struct RunsReadOptions {
  bool use_measured_network = false;  ///< nccl_*_GBps are read
};

/// One row as a run. Throws InputError (status `invalid`) for cells that cannot be read, and
/// Unsupported for what is not modelled.
RunsRow read_runs_row(const CsvTable& table, const CsvTable::Row& row, const DataPath& data,
                      const RunsReadOptions& options);

}  // namespace forerun

#pragma once

// A table of one published run, whose cells a test changes by column.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "calibration/runs_table.hpp"
#include "tests/support/plans.hpp"

namespace forerun::test {

using Cells = std::map<std::string, std::string>;

/// Llama-3.1-8B on 8 GPUs, every column that must be stated.
inline Cells plain_cells() {
  return {{"id", "a"},
          {"hardware", "H100-SXM-95GB"},
          {"gpus", "8"},
          {"layers", "32"},
          {"hidden", "4096"},
          {"ffn_hidden", "14336"},
          {"heads", "32"},
          {"kv_heads", "8"},
          {"vocab", "128256"},
          {"seq_len", "8192"},
          {"micro_batch", "1"},
          {"global_batch", "16"},
          {"framework", "torchtitan"},
          {"framework_version", "2024-12"}};
}

/// One line a row under the columns of the first.
inline CsvTable table_of(const std::vector<Cells>& rows, const std::string& name = "runs.csv") {
  std::string header, body;
  for (const auto& [column, value] : rows.at(0))
    header += (header.empty() ? "" : ",") + column;
  for (const Cells& row : rows) {
    std::string line;
    bool first = true;
    for (const auto& [column, value] : row) {
      line += (first ? "" : ",") + csv_cell(value);
      first = false;
    }
    body += line + "\n";
  }
  return CsvTable(header + "\n" + body, name);
}

inline RunsRow read_cells(const Cells& changed, const RunsReadOptions& options = {}) {
  Cells cells = plain_cells();
  for (const auto& [column, value] : changed)
    cells[column] = value;
  const CsvTable table = table_of({cells});
  return read_runs_row(table, table.rows().at(0), source_data(), options);
}

}  // namespace forerun::test

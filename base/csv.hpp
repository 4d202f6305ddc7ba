#pragma once

// Tables as CSV (RFC 4180, read by libcsv): a header line and rows that know their line.

#include <cstddef>
#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace forerun {

class CsvTable {
 public:
  struct Row {
    int line = 0;
    std::vector<std::string> cells;
  };

  /// Throws InputError: no header, a column name twice, a quote that does not close. Rows with a
  /// wrong number of cells are kept; the caller decides.
  CsvTable(const std::string& text, std::string name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }

  /// The cell of `row` in `column`; "" where the column or the cell is absent.
  [[nodiscard]] std::string_view cell(const Row& row, std::string_view column) const;
  [[nodiscard]] bool has(std::string_view column) const;
  /// Leaves only the rows whose cell in `column` matches somewhere.
  void keep(std::string_view column, const std::regex& pattern);
  /// The place of a cell, for messages.
  [[nodiscard]] Place place(const Row& row) const { return {name_, row.line, 0}; }

 private:
  std::string name_;
  std::vector<std::string> columns_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<Row> rows_;
};

CsvTable read_csv_file(const std::string& path);

/// One cell, quoted where it must be.
std::string csv_cell(std::string_view text);

}  // namespace forerun

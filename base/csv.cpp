#include "base/csv.hpp"

#include <csv.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/text_file.hpp"

namespace forerun {
namespace {

struct Collector {
  std::vector<CsvTable::Row> rows;
  CsvTable::Row row;
  int line = 1;

  void field(const char* text, std::size_t size) {
    if (row.cells.empty()) row.line = line;
    row.cells.emplace_back(text, size);
    line += static_cast<int>(std::count(text, text + size, '\n'));
  }
  void end_row(int ended_by) {
    rows.push_back(std::exchange(row, {}));
    if (ended_by == '\n') ++line;
  }
};

void on_field(void* text, std::size_t size, void* collector) {
  static_cast<Collector*>(collector)->field(static_cast<const char*>(text), size);
}

void on_row(int ended_by, void* collector) {
  static_cast<Collector*>(collector)->end_row(ended_by);
}

std::vector<CsvTable::Row> parse(const std::string& text, const std::string& name) {
  csv_parser parser;
  // Empty lines are delivered as empty rows, so that line numbers stay right.
  if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL | CSV_REPALL_NL) != 0) {
    throw std::bad_alloc();
  }
  const std::unique_ptr<csv_parser, void (*)(csv_parser*)> guard(&parser, csv_free);
  Collector collector;
  const std::size_t read =
      csv_parse(&parser, text.data(), text.size(), on_field, on_row, &collector);
  const bool closed = csv_fini(&parser, on_field, on_row, &collector) == 0;
  if (read != text.size() || !closed) {
    throw InputError({name, collector.line, 0}, "",
                     "not valid CSV: a quote that does not close, or text behind a closing quote");
  }
  return std::move(collector.rows);
}

}  // namespace

CsvTable::CsvTable(const std::string& text, std::string name) : name_(std::move(name)) {
  rows_ = parse(text, name_);
  std::erase_if(rows_, [](const Row& row) {
    return row.cells.empty() || (row.cells.size() == 1 && row.cells[0].empty());
  });
  if (rows_.empty()) throw InputError({name_, 0, 0}, "", "the table has no header line");
  columns_ = std::move(rows_.front().cells);
  rows_.erase(rows_.begin());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!index_.emplace(columns_[i], i).second) {
      throw InputError({name_, 1, 0}, columns_[i], "the column stands twice in the header");
    }
  }
}

std::string_view CsvTable::cell(const Row& row, std::string_view column) const {
  const auto at = index_.find(column);
  if (at == index_.end() || at->second >= row.cells.size()) return {};
  return row.cells[at->second];
}

bool CsvTable::has(std::string_view column) const {
  return index_.find(column) != index_.end();
}

void CsvTable::keep(std::string_view column, const std::regex& pattern) {
  std::erase_if(rows_, [&](const Row& row) {
    const std::string_view text = cell(row, column);
    return !std::regex_search(text.begin(), text.end(), pattern);
  });
}

CsvTable read_csv_file(const std::string& path) {
  TextFile file = read_text_file(path, kMaxTableBytes);
  return CsvTable(file.text, file.name);
}

std::string csv_cell(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };  // readers trim it
  const bool trimmed = !text.empty() && (blank(text.front()) || blank(text.back()));
  if (!trimmed && text.find_first_of(",\"\n\r") == std::string_view::npos) {
    return std::string(text);
  }
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace forerun

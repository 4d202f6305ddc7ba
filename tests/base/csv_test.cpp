#include "base/csv.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/base/expect.hpp"
#include "tests/base/temporary_folder.hpp"

namespace forerun {
namespace {

using test::contains;
using test::input_error;
using Cells = std::vector<std::string>;

std::string refusal(const std::string& text) {
  return input_error([&] { CsvTable(text, "t.csv"); });
}

}  // namespace

TEST_CASE("a table has columns by name and rows by line") {
  const CsvTable table("id,gpus,note\na,8,\nb,16,x y\n", "t.csv");
  CHECK(table.columns() == Cells{"id", "gpus", "note"});
  REQUIRE(table.rows().size() == 2);
  CHECK(table.cell(table.rows()[1], "gpus") == "16");
  CHECK(table.cell(table.rows()[1], "note") == "x y");
  CHECK(table.cell(table.rows()[0], "note").empty());
  CHECK(table.cell(table.rows()[0], "none").empty());
  CHECK(table.has("gpus"));
  CHECK_FALSE(table.has("Gpus"));
  CHECK(table.place(table.rows()[1]).text() == "t.csv:3");
}

TEST_CASE("quotes hold commas, quotes and line breaks, and lines are counted through them") {
  const CsvTable table("id,note\na,\"x, \"\"y\"\"\"\nb,\"one\ntwo\nthree\"\n\nc,z\n", "t.csv");
  REQUIRE(table.rows().size() == 3);
  CHECK(table.rows()[0].cells[1] == "x, \"y\"");
  CHECK(table.rows()[1].cells[1] == "one\ntwo\nthree");
  CHECK(table.rows()[0].line == 2);
  CHECK(table.rows()[1].line == 3);
  CHECK(table.rows()[2].line == 7);  // 3 lines of row b, one that is empty
}

TEST_CASE("line ends of Windows and a last line without end are read") {
  const CsvTable table("id,gpus\r\na,8\r\nb,16", "t.csv");
  REQUIRE(table.rows().size() == 2);
  CHECK(table.rows()[0].cells == Cells{"a", "8"});
  CHECK(table.rows()[1].cells == Cells{"b", "16"});
  CHECK(table.rows()[1].line == 3);
}

TEST_CASE("rows with a wrong number of cells are kept as they are") {
  const CsvTable table("id,gpus\na\nb,8,more\n", "t.csv");
  CHECK(table.rows()[0].cells.size() == 1);
  CHECK(table.rows()[1].cells.size() == 3);
  CHECK(table.cell(table.rows()[0], "gpus").empty());
}

TEST_CASE("a table without header, with a column twice or an open quote is refused") {
  CHECK(refusal("") == "t.csv: the table has no header line");
  CHECK(refusal("\n\n") == "t.csv: the table has no header line");
  CHECK(contains(refusal("id,gpus,id\n"), "id: the column stands twice"));
  CHECK(contains(refusal("id\na\n\"open\n"), "t.csv:3: not valid CSV"));
  CHECK(contains(refusal("id\n\"a\"b\n"), "not valid CSV"));
}

TEST_CASE("a cell that is written comes back as it was") {
  const Cells cells{"plain", "",        "a,b",    "say \"x\"", "two\nlines",
                    "\r",    " before", "after ", "\ttab",     "\xC3\xA9"};
  std::string line;
  for (const std::string& cell : cells)
    line += (line.empty() ? "" : ",") + csv_cell(cell);
  const CsvTable table("a,b,c,d,e,f,g,h,i,j\n" + line + "\n", "t.csv");
  REQUIRE(table.rows().size() == 1);
  CHECK(table.rows()[0].cells == cells);
  CHECK(csv_cell("plain") == "plain");
  CHECK(csv_cell("say \"x\"") == "\"say \"\"x\"\"\"");
}

TEST_CASE("a table is read from a file") {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("runs.csv", "\xEF\xBB\xBFid,gpus\na,8\n");
  const CsvTable table = read_csv_file(path);
  CHECK(table.name() == path);
  CHECK(table.columns()[0] == "id");  // without the byte order mark
}

}  // namespace forerun

// Damaged tables.

#include "base/csv.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/fuzz/mutator.hpp"

namespace forerun::test {
namespace {

const std::string kTable =
    "id,gpus,note\na,8,plain\nb,16,\"quoted, \"\"twice\"\"\"\n\nc,,\"two\nlines\"\r\nd,64\n";

}  // namespace

TEST_CASE("damaged tables are read or refused, and what was read can be written and read again") {
  Mutator mutated(31);
  Outcomes outcomes;
  for (int i = 0; i < 6000; ++i) {
    const std::string text = mutated(kTable);
    outcomes.expect_known(text, [&] {
      const CsvTable table(checked_utf8(text, "t.csv"), "t.csv");
      std::string again;
      for (const std::string& column : table.columns())
        again += csv_cell(column) + ",";
      again += "end\n";
      for (const CsvTable::Row& row : table.rows()) {
        for (const std::string& cell : row.cells)
          again += csv_cell(cell) + ",";
        again += "end\n";
      }
      const CsvTable copy(again, "copy.csv");
      REQUIRE(copy.rows().size() == table.rows().size());
      for (std::size_t r = 0; r < table.rows().size(); ++r) {
        std::vector<std::string> cells = table.rows()[r].cells;
        cells.emplace_back("end");
        CHECK(copy.rows()[r].cells == cells);
        CHECK(table.rows()[r].line >= 1);
      }
    });
  }
  CHECK(outcomes.values > 1000);
  CHECK(outcomes.refused > 500);
}

}  // namespace forerun::test

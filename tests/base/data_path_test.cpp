#include "base/data_path.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "base/catalog_file.hpp"
#include "tests/base/expect.hpp"
#include "tests/base/temporary_folder.hpp"

namespace forerun {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::Environment;
using test::input_error;
using test::TemporaryFolder;

constexpr const char* kGpus = "topology/catalog/gpus";
constexpr const char* kKnown = "topology/catalog/gpus/h100-sxm-80gb.yaml";

std::string known_at(const DataPath& data) {
  return data.find(kKnown).value_or("").string();
}

}  // namespace

TEST_CASE("the user's folders come before FORERUN_DATA and that before the source tree") {
  const TemporaryFolder first, second, environment;
  const std::string in_source = (fs::path(FORERUN_TEST_SOURCE) / kKnown).string();
  const Environment unset("FORERUN_DATA", "");
  CHECK(known_at(DataPath()) == in_source);
  const std::string in_environment = environment.write(kKnown, "a: 1");
  CHECK(known_at(DataPath()) == in_source);
  const Environment set("FORERUN_DATA", environment.path().string());
  CHECK(known_at(DataPath()) == in_environment);
  const std::string in_second = second.write(kKnown, "a: 1");
  CHECK(known_at(DataPath({first.path(), second.path()})) == in_second);
  const std::string in_first = first.write(kKnown, "a: 1");
  CHECK(known_at(DataPath({first.path(), second.path()})) == in_first);
}

TEST_CASE("a folder that lacks a file leaves it to the next one") {
  const TemporaryFolder own;
  own.write("topology/catalog/gpus/mine.yaml", "a: 1");
  const DataPath data({own.path()});
  CHECK(known_at(data) == (fs::path(FORERUN_TEST_SOURCE) / kKnown).string());
  CHECK_FALSE(data.find("topology/catalog/gpus/none.yaml").has_value());
  CHECK_FALSE(data.find(kGpus).has_value());  // a folder is no file
}

TEST_CASE("a folder of the user that does not exist is refused") {
  const TemporaryFolder own;
  const fs::path missing = own.path() / "missing";
  CHECK(contains(input_error([&] { DataPath({missing}); }), missing.string() + ": is no folder"));
  const std::string file = own.write("file", "a: 1");
  CHECK(contains(input_error([&] { DataPath({file}); }), "is no folder"));
}

TEST_CASE("names are those of all folders, sorted, each once") {
  const TemporaryFolder own;
  own.write(std::string(kGpus) + "/a-mine.yaml", "a: 1");
  own.write(std::string(kGpus) + "/h100-sxm-80gb.yaml", "a: 1");
  own.write(std::string(kGpus) + "/notes.txt", "a: 1");
  const std::vector<std::string> names = DataPath({own.path()}).names(kGpus);
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(std::count(names.begin(), names.end(), "h100-sxm-80gb") == 1);
  CHECK(std::count(names.begin(), names.end(), "a-mine") == 1);
  CHECK(std::count(names.begin(), names.end(), "notes") == 0);
  CHECK(DataPath().names("no/such/folder").empty());
}

TEST_CASE("a catalogue entry is read by name and an unknown one names the nearest") {
  const TemporaryFolder own;
  own.write("things/lamp.yaml", "light: 1");
  own.write("things/chair.yaml", "legs: 4");
  const DataPath data({own.path()});
  const auto read = [&](const std::string& name) {
    return read_catalog_file(data, "things", "thing", name, {"run.yaml", 2, 5}, "thing.name");
  };
  CHECK(read("chair").find("legs")->scalar == "4");
  CHECK(input_error([&] { read("chiar"); }) ==
        "run.yaml:2:5: thing.name: unknown thing 'chiar', nearest 'chair'; known: chair, lamp");
  // A name is no path: nothing outside the folder is read.
  for (const std::string name :
       {"../things/chair", "./chair", "/etc/passwd", "", ".", "chair.yaml"}) {
    CHECK_MESSAGE(contains(input_error([&] { read(name); }), "unknown thing"), name);
  }
}

}  // namespace forerun

#include "base/text_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "tests/base/expect.hpp"
#include "tests/base/temporary_folder.hpp"

namespace forerun {
namespace {

using test::contains;
using test::input_error;
using test::TemporaryFolder;
using namespace std::string_literals;

std::string encoding_error(const std::string& bytes) {
  return input_error([&] { checked_utf8(bytes, "x"); });
}

}  // namespace

TEST_CASE("a text file is read whole under the name that was given") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.yaml", "tp: 8\n");
  const TextFile file = read_text_file(path);
  CHECK(file.name == path);
  CHECK(file.text == "tp: 8\n");
  CHECK(read_text_file(folder.write("empty", "")).text.empty());
}

TEST_CASE("a missing file and a directory are told apart") {
  const TemporaryFolder folder;
  const std::string missing = (folder.path() / "none.yaml").string();
  CHECK(input_error([&] { read_text_file(missing); }) ==
        missing + ": cannot be opened: No such file or directory");
  CHECK(contains(input_error([&] { read_text_file(folder.path().string()); }), "is a directory"));
  CHECK(contains(input_error([] { read_text_file(""); }), "cannot be opened"));
}

TEST_CASE("a file at the limit is read and one byte more is refused") {
  const TemporaryFolder folder;
  const std::size_t limit = 1 << 20;
  CHECK(read_text_file(folder.write("fits", std::string(limit, 'x')), limit).text.size() == limit);
  const std::string above = folder.write("above", std::string(limit + 1, 'x'));
  CHECK(contains(input_error([&] { read_text_file(above, limit); }), "limit of 1 MiB"));
}

TEST_CASE("an endless file is refused at the limit") {
  CHECK(contains(input_error([] { read_text_file("/dev/zero"); }), "limit of 4 MiB"));
}

TEST_CASE("a pipe is read until its writer closes it") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "pipe").string();
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::thread writer([&] {
    std::ofstream pipe(path);
    pipe << "tp: ";
    pipe.flush();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pipe << "8\n";
  });
  const std::string text = read_text_file(path).text;
  writer.join();
  CHECK(text == "tp: 8\n");
}

TEST_CASE("a pipe that nobody writes to is given up after a while") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "pipe").string();
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(contains(input_error([&] { read_text_file(path); }), "no data came for 5 s"));
}

TEST_CASE("a byte order mark of UTF-8 is taken off and one of UTF-16 refused") {
  CHECK(checked_utf8("\xEF\xBB\xBFtp: 8", "x") == "tp: 8");
  CHECK(contains(encoding_error("\xFF\xFEt\0p\0"s), "is UTF-16"));
  CHECK(contains(encoding_error("\xFE\xFF\0t\0p"s), "is UTF-16"));
  const TemporaryFolder folder;
  const std::string path = folder.write("utf16", "\xFF\xFEt\0p\0"s);
  CHECK(contains(input_error([&] { read_text_file(path); }), path + ": is UTF-16"));
}

TEST_CASE("the first byte that is not UTF-8 is named with line and column") {
  CHECK(encoding_error("tp: 8\nx: \xE9t\xE9\n") ==
        "x:2:4: byte 9 (0xE9) is not UTF-8 text; UTF-8 is wanted");
  CHECK(contains(encoding_error("\xFF"), "x:1:1: byte 0 (0xFF)"));
  CHECK(contains(encoding_error("a\0b"s), "x:1:2: byte 1 (0x00)"));
  CHECK(contains(encoding_error("caf\xC3"), "x:1:4: byte 3 (0xC3)"));  // cut in a character
}

TEST_CASE("characters of every length in UTF-8 are taken") {
  // RFC 3629: the first and last of 1, 2, 3 and 4 bytes, around the surrogates too.
  for (const std::string text :
       {"\x01", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    CHECK(checked_utf8(text, "x") == text);
  }
}

TEST_CASE("overlong forms, surrogates and what is above U+10FFFF are no UTF-8") {
  for (const std::string text :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\x80"}) {
    CHECK_MESSAGE(contains(encoding_error(text), "byte 0 "), text);
  }
}

}  // namespace forerun

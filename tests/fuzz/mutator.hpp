#pragma once

// Seeded damage to texts that were valid, and the check that whatever comes of it is a value, an
// InputError or Unsupported, soon.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text_file.hpp"

namespace forerun::test {

/// Texts that change what a document means where they come to stand.
inline const std::vector<std::string> kTokens{"{",
                                              "}",
                                              "[",
                                              "]",
                                              ":",
                                              ": ",
                                              ",",
                                              "-",
                                              "- ",
                                              "\n",
                                              "\n  ",
                                              "\n---\n",
                                              "#",
                                              "'",
                                              "\"",
                                              "&a ",
                                              "*a",
                                              "<<: *a",
                                              "!t ",
                                              "|",
                                              ">",
                                              "?",
                                              "? ",
                                              "%",
                                              "@",
                                              "`",
                                              "~",
                                              "null",
                                              "true",
                                              "\t",
                                              " ",
                                              "=",
                                              "\r\n",
                                              "\\",
                                              "0",
                                              "-1",
                                              "010",
                                              "1e999",
                                              "-0.0",
                                              "nan",
                                              "inf",
                                              "1e308",
                                              "16777216",
                                              "1099511627776",
                                              "9223372036854775807",
                                              "-9223372036854775808",
                                              "99999999999999999999",
                                              "0777777777777777777777777",
                                              "1_0",
                                              "2147483648",
                                              "4294967296",
                                              "1e15",
                                              "0.5",
                                              "GiB",
                                              " Gb/s",
                                              "\xC3\xA9",
                                              "\xF0\x9F\x9A\x80",
                                              "\xE2\x80\xAE",
                                              "\xFF",
                                              "\xED\xA0\x80",
                                              std::string(1, '\0'),
                                              "\x01",
                                              "[[[[[[[[",
                                              "{{{{{{{{",
                                              "{a: ",
                                              "auto",
                                              "../x",
                                              "/dev/zero"};

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  /// The text with one to three changes.
  std::string operator()(std::string text) {
    for (std::size_t i = 1 + below(3); i > 0; --i)
      change(text);
    return text;
  }

  /// A number below `count`, which is above 0.
  std::size_t below(std::size_t count) { return random_() % count; }
  template <class Item>
  const Item& one_of(const std::vector<Item>& items) {
    return items[below(items.size())];
  }

 private:
  void change(std::string& text) {
    switch (below(9)) {
      case 0:
        text.erase(place(text), 1 + below(12));
        break;
      case 1: {
        const std::size_t at = place(text);
        text.insert(place(text), text.substr(at, 1 + below(40)));
        break;
      }
      case 2:
      case 3:
        text.insert(place(text), one_of(kTokens));
        break;
      case 4:
        text.resize(place(text));
        break;
      case 5:
        swap_lines(text);
        break;
      case 6:
        if (const std::size_t at = place(text); at < text.size()) {
          text[at] = static_cast<char>(random_());
        }
        break;
      default:
        replace_word(text);
    }
  }

  std::size_t place(const std::string& text) { return below(text.size() + 1); }

  /// A word or number somewhere becomes a token or another word of the text.
  void replace_word(std::string& text) {
    constexpr std::string_view kBetween = " \t\n,:{}[]\"'";
    const std::size_t begin = text.find_first_not_of(kBetween, place(text));
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    const std::size_t other = text.find_first_not_of(kBetween, place(text));
    std::string word = one_of(kTokens);
    if (below(3) == 0 && other != std::string::npos) {
      word = text.substr(other, std::min(text.find_first_of(kBetween, other), text.size()) - other);
    }
    text.replace(begin, end - begin, word);
  }

  void swap_lines(std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    if (lines.empty()) return;
    std::swap(lines[below(lines.size())], lines[below(lines.size())]);
    if (below(2) == 0) lines.push_back(one_of(lines));
    text.clear();
    for (const std::string& line : lines)
      text += line + "\n";
  }

  std::mt19937_64 random_;
};

/// Counts of what came of damaged texts.
class Outcomes {
 public:
  /// Runs `call`, which reads `text`; any other exception, a message that is no text and a long
  /// wait are failures that show the text.
  template <class Call>
  void expect_known(const std::string& text, Call call) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      call();
      ++values;
    } catch (const Unsupported& error) {
      ++unsupported;
      check_message(text, error.what());
    } catch (const InputError& error) {
      ++refused;
      check_message(text, error.what());
    } catch (const std::exception& error) {
      FAIL_CHECK("another exception: " << error.what() << "\nfrom: " << text);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    CHECK_MESSAGE(took.count() < kMostSeconds, text);
  }

  int values = 0;
  int unsupported = 0;
  int refused = 0;

 private:
  static constexpr double kMostSeconds = 5;  // far above the milliseconds that any text needs

  static void check_message(const std::string& text, const std::string& message) {
    bool readable = !message.empty();
    try {
      checked_utf8(message, "message");
    } catch (const InputError&) {
      readable = false;
    }
    CHECK_MESSAGE(readable, "the message is no text: " << message << "\nfrom: " << text);
  }
};

/// A file of the source tree.
inline std::string source_text(const std::string& relative) {
  std::ifstream file(std::string(FORERUN_TEST_SOURCE) + "/" + relative, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  REQUIRE_MESSAGE(!text.empty(), relative);
  return text;
}

}  // namespace forerun::test

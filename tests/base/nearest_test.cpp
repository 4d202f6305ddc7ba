#include "base/nearest.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace forerun {

TEST_CASE("an edit is an insertion, a deletion, a replacement or a swap of neighbours") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("tp", "tp") == 0);
  CHECK(edit_distance("", "cp") == 2);
  CHECK(edit_distance("microbatch", "micro_batch") == 1);
  CHECK(edit_distance("gpus", "gpu") == 1);
  CHECK(edit_distance("bf16", "fp16") == 2);
  CHECK(edit_distance("modle", "model") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);  // the textbook's example of Levenshtein
  CHECK(edit_distance("ca", "abc") ==
        3);  // optimal string alignment: no edit inside a swapped pair
}

TEST_CASE("the distance is the same in both directions") {
  const std::vector<std::string> words{"", "a", "tp", "pt", "model", "modle", "global_batch"};
  for (const std::string& a : words) {
    for (const std::string& b : words)
      CHECK(edit_distance(a, b) == edit_distance(b, a));
  }
}

TEST_CASE("the nearest word has the fewest edits and the first of equals wins") {
  CHECK(nearest_word("llama3-8", {"llama3-70b", "llama3-8b"}) == "llama3-8b");
  CHECK(nearest_word("xp", {"tp", "cp", "pp"}) == "tp");
  CHECK(nearest_word("anything", {}).empty());
}

TEST_CASE("a suggestion is made only for what may be a misspelling") {
  const std::vector<std::string> known{"micro_batch", "global_batch", "precision"};
  CHECK(did_you_mean("micro_bacth", known) == " (did you mean 'micro_batch'?)");
  CHECK(did_you_mean("colour", known).empty());
  CHECK(did_you_mean("", known).empty());
  CHECK(did_you_mean("micro_batch", {}).empty());
}

TEST_CASE("words are joined with a separator between them") {
  CHECK(join({}) == "");
  CHECK(join({"a"}) == "a");
  CHECK(join({"a", "b", "c"}) == "a, b, c");
  CHECK(join({"1", "2"}, " ") == "1 2");
}

}  // namespace forerun

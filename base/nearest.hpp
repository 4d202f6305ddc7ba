#pragma once

// "Did you mean": the known word nearest to a misspelt one.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace forerun {

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The word of `known` with the fewest edits from `word`; empty if `known` is.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

/// " (did you mean 'x'?)" when a known word is close enough to be a misspelling, else "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

/// "a, b, c" for messages that list what is allowed.
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

}  // namespace forerun

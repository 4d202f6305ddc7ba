#include "base/nearest.hpp"

#include <algorithm>

namespace forerun {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment over three rows.
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t fewest = static_cast<std::size_t>(-1);
  for (const std::string& candidate : known) {
    const std::size_t edits = edit_distance(word, candidate);
    if (edits < fewest) {
      fewest = edits;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string best = nearest_word(word, known);
  const std::size_t longest = std::max(best.size(), word.size());
  if (best.empty() || edit_distance(word, best) * 2 > longest) return "";
  return " (did you mean '" + best + "'?)";
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += separator;
    out += word;
  }
  return out;
}

}  // namespace forerun

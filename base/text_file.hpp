#pragma once

// Reading a whole text file with every way it can be bad found first: missing, a directory, not
// readable, endless (a size limit), a pipe nobody writes to (a time limit), UTF-16, not UTF-8,
// NUL bytes. "-" is standard input.

#include <cstddef>
#include <string>
#include <string_view>

namespace forerun {

struct TextFile {
  std::string name;  ///< as the user gave it; "<stdin>" for "-"
  std::string text;  ///< UTF-8 without byte order mark
};

inline constexpr std::size_t kMaxRunFileBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxTableBytes = std::size_t{64} << 20;

/// Throws InputError.
TextFile read_text_file(const std::string& path, std::size_t max_bytes = kMaxRunFileBytes);

/// Checks encoding and strips a UTF-8 byte order mark; for text that is already in memory.
/// Throws InputError naming `name`.
std::string checked_utf8(std::string text, const std::string& name);

}  // namespace forerun

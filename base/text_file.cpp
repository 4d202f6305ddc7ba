#include "base/text_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace forerun {
namespace {

constexpr int kPipeTimeoutMs = 5000;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ > 0) ::close(fd_);  // standard input (0) stays open
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void refuse(const std::string& name, const std::string& problem) {
  throw InputError({name, 0, 0}, "", problem);
}

void wait_for_data(int fd, const std::string& name) {
  pollfd waiting{fd, POLLIN, 0};
  if (::poll(&waiting, 1, kPipeTimeoutMs) == 0) {
    refuse(name, fmt::format("no data came for {} s: nobody writes to it", kPipeTimeoutMs / 1000));
  }
}

std::string read_all(int fd, const std::string& name, std::size_t max_bytes, bool may_block) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (true) {
    if (may_block) wait_for_data(fd, name);
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) refuse(name, std::string("cannot be read: ") + std::strerror(errno));
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > max_bytes) {
      refuse(name,
             fmt::format("is larger than the limit of {} MiB for such a file", max_bytes >> 20));
    }
  }
}

/// Bytes of the UTF-8 sequence that starts with `lead`; 0 if none does.
std::size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

/// No overlong form, no surrogate, nothing above U+10FFFF (RFC 3629, section 4).
bool second_fits(unsigned char lead, unsigned char second) {
  if (lead == 0xE0) return second >= 0xA0;
  if (lead == 0xED) return second < 0xA0;
  if (lead == 0xF0) return second >= 0x90;
  if (lead == 0xF4) return second < 0x90;
  return true;
}

std::size_t first_bad_byte(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = sequence_length(at(i));
    if (length == 0 || i + length > text.size() || text[i] == '\0') return i;
    const auto is_tail = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
    const auto tail = text.substr(i + 1, length - 1);
    if (!std::all_of(tail.begin(), tail.end(), is_tail)) return i;
    if (length > 1 && !second_fits(at(i), at(i + 1))) return i;
    i += length;
  }
  return std::string_view::npos;
}

}  // namespace

std::string checked_utf8(std::string text, const std::string& name) {
  const auto starts = [&](std::string_view mark) {
    return std::string_view(text).starts_with(mark);
  };
  if (starts("\xFF\xFE") || starts("\xFE\xFF")) {
    refuse(name, "is UTF-16 (it begins with a UTF-16 byte order mark); UTF-8 is wanted");
  }
  if (starts("\xEF\xBB\xBF")) text.erase(0, 3);
  const std::size_t bad = first_bad_byte(text);
  if (bad == std::string_view::npos) return text;
  const int line =
      1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(bad), '\n'));
  const std::size_t line_start = bad == 0 ? 0 : text.rfind('\n', bad - 1) + 1;
  throw InputError({name, line, static_cast<int>(bad - line_start) + 1}, "",
                   fmt::format("byte {} (0x{:02X}) is not UTF-8 text; UTF-8 is wanted", bad,
                               static_cast<unsigned char>(text[bad])));
}

TextFile read_text_file(const std::string& path, std::size_t max_bytes) {
  if (path == "-")
    return {"<stdin>", checked_utf8(read_all(0, "<stdin>", max_bytes, false), "<stdin>")};
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) refuse(path, std::string("cannot be opened: ") + std::strerror(errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) refuse(path, "cannot be examined");
  if (S_ISDIR(info.st_mode)) refuse(path, "is a directory; a file is wanted");
  const bool may_block = !S_ISREG(info.st_mode);  // a pipe, a terminal
  return {path, checked_utf8(read_all(fd.get(), path, max_bytes, may_block), path)};
}

}  // namespace forerun

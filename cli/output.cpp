#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

#include "base/error.hpp"
#include "cli/commands.hpp"

namespace forerun {

void write_answer(const std::string& text, const std::string& path) {
  if (path.empty() || path == "-") {
    std::cout << text << std::flush;
    if (std::cout) return;
    throw InputError({"standard output", 0, 0}, "",
                     std::string("cannot be written: ") + std::strerror(errno));
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    throw InputError({path, 0, 0}, "", std::string("cannot be written: ") + std::strerror(errno));
  }
}

}  // namespace forerun

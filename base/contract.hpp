#pragma once

// Contracts tell our own bugs from wrong input: a broken contract throws Bug, which ends as exit
// code 1. FR_ASSERT guards public entries in all builds; FR_DEBUG_ASSERT guards hot loops and is
// compiled out of release builds.

#include <stdexcept>
#include <string>

namespace forerun {

/// A fault of the program itself, never of its input.
class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void contract_broken(const char* condition, const char* file, int line) {
  throw Bug(std::string(file) + ":" + std::to_string(line) + ": broken contract: " + condition);
}

}  // namespace forerun

#define FR_ASSERT(condition) \
  ((condition) ? void(0) : ::forerun::contract_broken(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define FR_DEBUG_ASSERT(condition) void(0)
#else
#define FR_DEBUG_ASSERT(condition) FR_ASSERT(condition)
#endif

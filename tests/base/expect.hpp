#pragma once

// What a call that must fail says.

#include <string>

#include "base/error.hpp"

namespace forerun::test {

/// The message of the InputError that `call` throws; "no error" where it throws none.
template <class Call>
std::string input_error(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// The message of what `call` throws as Unsupported; "no error" where it throws none.
template <class Call>
std::string unsupported(Call call) {
  try {
    call();
  } catch (const Unsupported& error) {
    return error.what();
  }
  return "no error";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace forerun::test

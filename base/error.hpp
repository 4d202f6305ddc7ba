#pragma once

// Failure, told apart by kind (see docs/methods/failure.md):
//   InputError   the user's input is wrong: place, key, problem, what is allowed        exit 2
//   Unsupported  a legal question that is not modelled; names what is missing           exit 2
//   Bug          a fault of ours (base/contract.hpp)                                    exit 1
// "Does not fit" is a value in a result and never an exception.

#include <stdexcept>
#include <string>

namespace forerun {

/// A place in an input: file (or "--set", or a table), line and column from 1; 0 = not known.
struct Place {
  std::string source;
  int line = 0;
  int column = 0;

  /// "file:line:column", leaving out what is not known.
  [[nodiscard]] std::string text() const;
};

class InputError : public std::runtime_error {
 public:
  /// `key` is the dotted path of the setting (may be empty); `problem` says what was found, what is
  /// allowed and the nearest valid value, in lower case.
  InputError(const Place& place, const std::string& key, const std::string& problem);

  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  Place place_;
  std::string key_;
  std::string problem_;
};

class Unsupported : public std::runtime_error {
 public:
  /// `what` names the missing piece, for instance "schedule zbv".
  explicit Unsupported(const std::string& what) : std::runtime_error("unsupported: " + what) {}
};

}  // namespace forerun

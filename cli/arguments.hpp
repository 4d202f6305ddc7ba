#pragma once

#include <functional>
#include <string>

#include "cli/commands.hpp"

namespace forerun {

/// What the arguments ask for.
struct Command {
  std::function<Exit()> run;  ///< empty: nothing to run, `exit` says how to end
  Exit exit = Exit::kAnswered;
  std::string message;  ///< help or version for standard output, or what was wrong
  bool json = false;
  int verbosity = 0;
};

Command parse_arguments(int argc, char** argv);

}  // namespace forerun

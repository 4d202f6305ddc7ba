#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <iostream>
#include <new>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "cli/arguments.hpp"
#include "report/report.hpp"

namespace forerun {
namespace {

/// Says on standard error what is wrong, and in --json on standard output too.
Exit end_with(Exit exit, const std::string& message, const std::string& status, bool json) {
  std::cerr << message << "\n";
  if (json) std::cout << status_json(status);
  return exit;
}

Exit run(const Command& command) {
  try {
    return command.run();
  } catch (const Unsupported& error) {
    return end_with(Exit::kWrongInput, error.what(), error.what(), command.json);
  } catch (const InputError& error) {
    return end_with(Exit::kWrongInput, error.what(), std::string("invalid: ") + error.what(),
                    command.json);
  } catch (const std::bad_alloc&) {
    return end_with(Exit::kOurFault, "out of memory", "error: out of memory", command.json);
  } catch (const std::exception& error) {
    return end_with(Exit::kOurFault, std::string("a fault of forerun: ") + error.what(),
                    std::string("error: ") + error.what(), command.json);
  }
}

int start(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_color_st("forerun"));
  spdlog::set_pattern("%^%l%$: %v");
  const Command command = parse_arguments(argc, argv);
  if (!command.run) {
    if (command.exit == Exit::kAnswered) {
      std::cout << command.message;
      return 0;
    }
    return static_cast<int>(
        end_with(command.exit, command.message, "invalid: " + command.message, command.json));
  }
  spdlog::set_level(command.verbosity < 0   ? spdlog::level::err
                    : command.verbosity > 0 ? spdlog::level::debug
                                            : spdlog::level::warn);
  return static_cast<int>(run(command));
}

}  // namespace
}  // namespace forerun

int main(int argc, char** argv) {
  return forerun::start(argc, argv);
}

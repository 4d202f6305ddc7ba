// The only file that knows CLI11 (which takes seconds to compile): verbs and options to the structs
// of commands.hpp.

#include "cli/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>

#include "base/nearest.hpp"
#include "report/report.hpp"

namespace forerun {
namespace {

CLI::Validator not_empty() {
  return {[](const std::string& given) {
            return given.find_first_not_of(' ') == std::string::npos ? "an expression is wanted"
                                                                     : "";
          },
          ""};
}

CLI::Validator digits() {
  return {[](const std::string& given) {
            const bool all = given.find_first_not_of("0123456789") == std::string::npos;
            return all && !given.empty() ? "" : "found '" + given + "', a whole number is wanted";
          },
          "N"};
}

/// Refuses other words, naming the nearest.
CLI::Validator one_of(std::vector<std::string> words) {
  const std::string shown = "{" + join(words, ",") + "}";
  return {[words = std::move(words)](const std::string& given) {
            if (std::find(words.begin(), words.end(), given) != words.end()) return std::string();
            return "found '" + given + "', allowed: " + join(words) + did_you_mean(given, words);
          },
          shown};
}

void add_common(CLI::App& verb, CommonOptions& o) {
  verb.add_flag("--json", o.json, "one JSON document on standard output");
  verb.add_option("--data", o.data, "a folder of your own data, searched first (repeatable)")
      ->allow_extra_args(false);
  verb.add_option("-o,--out", o.out, "file for the answer ('-': standard output)");
  verb.add_option("--seed", o.seed, "seed of what is drawn at random")->check(digits());
  verb.add_flag_callback(
      "-q,--quiet", [&o] { o.verbosity = -1; }, "only errors on standard error");
  verb.add_flag_callback(
      "-v,--verbose", [&o] { o.verbosity = 1; }, "more on standard error");
}

void add_run(CLI::App& verb, RunOptions& o, int least, int most) {
  add_common(verb, o.common);
  verb.add_option("RUN", o.runs, "run file, '-': standard input")
      ->required()
      ->expected(least, most)
      ->type_name("FILE");
  verb.add_option("--set", o.sets, "dotted.key=value on top of the file (repeatable)")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
}

void add_engine(CLI::App& verb, EngineKind& engine) {
  verb.add_option_function<std::string>(
          "--engine", [&engine](const std::string& name) { engine = *from_text<EngineKind>(name); },
          "analytic (default) or des")
      ->check(one_of({"analytic", "des"}));
}

class Arguments {
 public:
  Arguments() {
    app_.name("forerun");
    app_.set_version_flag("--version", version_text());
    app_.require_subcommand(1);
    add_predict();
    add_compare();
    add_sweep();
    add_mesh();
    add_validate();
    add_model();
  }

  Command parse(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return {{}, Exit::kAnswered, app_.help(), false, 0};
    } catch (const CLI::CallForVersion&) {
      return {{}, Exit::kAnswered, version_text() + "\n", false, 0};
    } catch (const CLI::ParseError& error) {
      return {{}, Exit::kWrongInput, explain(error, argc, argv), wants_json(argc, argv), 0};
    }
    return chosen_;
  }

 private:
  static bool wants_json(int argc, char** argv) {
    return std::any_of(argv, argv + argc,
                       [](const char* arg) { return std::string_view(arg) == "--json"; });
  }

  std::string explain(const CLI::ParseError& error, int argc, char** argv) const {
    std::vector<std::string> verbs;
    for (const CLI::App* verb : app_.get_subcommands({}))
      verbs.push_back(verb->get_name());
    const std::string first = argc > 1 ? argv[1] : "";
    const bool known = std::find(verbs.begin(), verbs.end(), first) != verbs.end();
    if (!first.empty() && first[0] != '-' && !known) {
      return "unknown verb '" + first + "'" + did_you_mean(first, verbs) +
             "; known: " + join(verbs);
    }
    if (first.empty()) return "a verb is wanted: " + join(verbs) + "; forerun VERB --help";
    const CLI::App& app = known ? *app_.get_subcommand(first) : app_;
    std::string problem = unknown_option(app, {argv + (known ? 2 : 1), argv + argc});
    if (problem.empty()) problem = lower_case(error.what());
    return problem + "; see forerun " + (known ? first + " " : "") + "--help";
  }

  /// The first argument that looks like an option and is none; empty: all are known.
  static std::string unknown_option(const CLI::App& app, const std::vector<std::string>& given) {
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames())
        known.push_back("--" + name);
    }
    for (const std::string& argument : given) {
      const std::string name = argument.substr(0, argument.find('='));
      if (name == "--" || !name.starts_with("--")) continue;
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      return "unknown option '" + name + "'" + did_you_mean(name, known);
    }
    return "";
  }

  /// CLI11's sentences as ours are written.
  static std::string lower_case(std::string text) {
    for (const char* word :
         {"At Most", "At least", "Value", "Could", "A subcommand", "The following"}) {
      const std::size_t at = text.find(word);
      if (at == std::string::npos) continue;
      std::transform(word, word + std::strlen(word), text.begin() + static_cast<long>(at),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    }
    return text;
  }

  template <class Options>
  void on(CLI::App* verb, std::shared_ptr<Options> o, const CommonOptions& common,
          Exit (*run)(const Options&)) {
    verb->callback([this, o, &common, run] {
      chosen_ = {[o, run] { return run(*o); }, Exit::kAnswered, "", common.json, common.verbosity};
    });
  }

  void add_predict() {
    CLI::App* verb = app_.add_subcommand("predict", "one forecast: speed, memory, where it goes");
    auto o = std::make_shared<PredictOptions>();
    add_run(*verb, o->run, 1, 1);
    add_engine(*verb, o->engine);
    verb->add_option("--network", o->network, "none; flow (links shared) is not modelled yet")
        ->check(one_of({"none", "flow"}));
    verb->add_option("--trace", o->trace, "file for the timeline of a step (open in Perfetto)");
    verb->add_option("--program", o->program, "file for the lowered program as a JSON tree");
    verb->add_option("--require", o->require, "exit 3 unless this holds: 'fits && mfu > 0.4'")
        ->check(not_empty());
    verb->add_option("--anchor", o->anchor, "your own measured runs; not modelled yet");
    verb->add_flag("--why", o->why,
                   "which placement change caused each collective; not modelled yet");
    on(verb, o, o->run.common, run_predict);
  }

  void add_compare() {
    CLI::App* verb = app_.add_subcommand("compare", "which of two or more runs is better, and why");
    auto o = std::make_shared<PredictOptions>();
    add_run(*verb, o->run, 2, 64);
    add_engine(*verb, o->engine);
    on(verb, o, o->run.common, run_compare);
  }

  void add_sweep() {
    CLI::App* verb = app_.add_subcommand("sweep", "every valid plan in a space, the best first");
    auto o = std::make_shared<SweepOptions>();
    add_run(*verb, o->run, 1, 1);
    verb->add_option("--top", o->top, "how many of the best are listed")
        ->check(CLI::Range(1, 100000));
    verb->add_option("--jobs", o->jobs, "threads at most; one is used")->check(CLI::Range(1, 1024));
    verb->add_flag("--exhaustive", o->exhaustive, "forecast every valid point in full, prune none");
    on(verb, o, o->run.common, run_sweep);
  }

  void add_mesh() {
    CLI::App* verb =
        app_.add_subcommand("mesh", "which ranks form each group and which link each crosses");
    auto o = std::make_shared<RunOptions>();
    add_run(*verb, *o, 1, 1);
    on(verb, o, o->common, run_mesh);
  }

  void add_validate() {
    CLI::App* verb = app_.add_subcommand("validate", "predict a table of published runs");
    auto o = std::make_shared<ValidateOptions>();
    add_common(*verb, o->common);
    verb->add_option("RUNS", o->table, "table of runs (CSV)")->required()->type_name("FILE");
    verb->add_option("--pairs", o->pairs, "table of pairs of those runs");
    verb->add_option("--residuals", o->residuals, "file for measured over predicted by stack");
    verb->add_option("--only", o->only, "only rows whose id matches this regular expression");
    verb->add_option("--worst", o->worst, "how many of the largest errors are listed")
        ->check(CLI::Range(1, 100000));
    verb->add_flag("--use-measured-network", o->use_measured_network,
                   "read what each row's job measured of its network");
    add_engine(*verb, o->engine);
    on(verb, o, o->common, run_validate);
  }

  void add_model() {
    CLI::App* verb = app_.add_subcommand("model", "a model as read, with exact parameter counts");
    auto o = std::make_shared<ModelOptions>();
    add_common(*verb, o->common);
    verb->add_option("MODEL", o->model, "catalogue name or file")->required();
    on(verb, o, o->common, run_model);
  }

  CLI::App app_{
      "Forecasts of training runs before a GPU-hour is spent: which configuration is "
      "better, will it fit, how fast, why, how sure."};
  Command chosen_;
};

}  // namespace

Command parse_arguments(int argc, char** argv) {
  return Arguments().parse(argc, argv);
}

}  // namespace forerun

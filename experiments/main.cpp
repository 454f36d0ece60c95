#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

#include "common/error.hpp"
#include "common/threads.hpp"
#include "experiments/commands.hpp"
#include "experiments/environment.hpp"
#include "experiments/options.hpp"

namespace {

int parse_and_act(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  CLI::App app{"Finds the best way to get work to a GPU and its results back.", "feedrate"};
  app.require_subcommand(1);
  app.set_version_flag("--version", feedrate::version_text());
  app.config_formatter(feedrate::json_config(app));
  // CLI11 reads the file before it reads the environment: the variable must be the default to be read in time.
  const char* config = std::getenv(feedrate::variable_of("config").c_str());
  app.set_config("--config", config != nullptr ? config : "",
                 "JSON file of options, by subcommand: {\"run\": {\"payload\": 64}}")
      ->envname(feedrate::variable_of("config"))
      ->check(CLI::ExistingFile);
  feedrate::Action action;
  feedrate::add_list(app, action);
  feedrate::add_run(app, action, arguments);
  feedrate::add_sweep(app, action, arguments);
  feedrate::add_capacity(app, action, arguments);
  feedrate::add_floors(app, action, arguments);
  feedrate::add_worker(app, action, arguments);
  feedrate::add_validate(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // --help and --version end here too, with code 0
    if (error.get_exit_code() != 0 && app.get_subcommands().empty() && app.remaining_size() != 0) {
      throw feedrate::BadInput("subcommand", app.remaining().front(), feedrate::subcommands_of(app));
    }
    return app.exit(error) == 0 ? 0 : 2;
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  // Lazy loading would load a kernel at its first launch, and wait for a resident kernel to end before it does.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  spdlog::set_default_logger(spdlog::stderr_color_mt("feedrate"));
  spdlog::set_pattern("%^%l%$: %v");
  feedrate::available_cores();  // before any thread is bound to one
  feedrate::install_signal_handlers();
  try {
    return parse_and_act(argc, argv);
  } catch (const feedrate::BadInput& error) {
    fmt::print(stderr, "feedrate: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "feedrate: {}\n", error.what());
    return 1;
  }
}

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "common/error.hpp"
#include "common/redis/url.hpp"
#include "common/registry.hpp"
#include "common/threads/threads.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/sources.hpp"
#include "experiments/cli/standard_streams.hpp"
#include "experiments/harness/machine/environment.hpp"
#include "experiments/harness/say.hpp"

namespace {

/// Returns the exit code: 2 for invalid input, whose source the message names.
int parse_and_act(CLI::App& app, const std::vector<std::string>& arguments) {
  app.require_subcommand(1);
  app.set_version_flag("--version", feedrate::version_text());
  app.config_formatter(feedrate::json_config(app));
  // CLI11 reads the config file before the environment, so the variable's value must be the option's default.
  const char* config = std::getenv(feedrate::variable_of("config").c_str());
  app.set_config("--config", config != nullptr ? config : "",
                 "JSON file of options, grouped by subcommand: {\"run\": {\"payload\": 64}}")
      ->envname(feedrate::variable_of("config"));
  feedrate::reject_unreadable_config(arguments);
  feedrate::Action action;
  feedrate::add_list(app, action);
  feedrate::add_run(app, action, arguments);
  feedrate::add_sweep(app, action, arguments);
  feedrate::add_tune(app, action, arguments);
  feedrate::add_capacity(app, action, arguments);
  feedrate::add_limits(app, action, arguments);
  feedrate::add_ab(app, action, arguments);
  feedrate::add_worker(app, action, arguments);
  feedrate::add_dlq(app, action);
  feedrate::add_store(app, action, arguments);
  feedrate::add_validate(app, action);
  feedrate::add_helper(app, action);
  feedrate::reject_unknown_variables(app);
  try {
    std::vector<std::string> words(arguments.rbegin(), arguments.rend() - 1);  // CLI11 reads them from the back
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    if (app.get_subcommands().empty()) {
      const std::string names = feedrate::subcommands_of(app);
      if (app.remaining_size() == 0) throw feedrate::BadInput("missing subcommand; allowed: " + names);
      throw feedrate::BadInput("subcommand", app.remaining().front(), names);
    }
    if (app.remaining_size(true) != 0) throw feedrate::unexpected(app);
    feedrate::say("feedrate: {} (--help lists the options)\n", feedrate::with_source(error.what(), app, arguments));
    return 2;
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  feedrate::open_standard_streams();
  feedrate::remove_service_links();  // before any thread reads the environment
  // Lazy loading would load a kernel at its first launch, and would first wait for a resident kernel to end.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  spdlog::set_default_logger(spdlog::stderr_color_mt("feedrate"));
  spdlog::set_pattern("%^%l%$: %v");
  feedrate::available_cores();  // before any thread is pinned to a core
  feedrate::install_signal_handlers();
  const std::vector<std::string> arguments(argv, argv + argc);
  std::for_each(argv + 1, argv + argc, feedrate::redis::hide_password);
  CLI::App app{"Finds the best way to send work to a GPU and get the results back.", "feedrate"};
  try {
    feedrate::reject_duplicates();
    return feedrate::exit_code_after_output(parse_and_act(app, arguments));
  } catch (const feedrate::BadInput& error) {
    feedrate::say("feedrate: {}\n", feedrate::with_source(error, app, arguments).what());
    return 2;
  } catch (const std::system_error& error) {  // from fmt, if a write to stdout fails
    if (error.code() != std::errc::broken_pipe) feedrate::say("feedrate: {}\n", error.what());
    return 1;
  } catch (const std::exception& error) {
    feedrate::say("feedrate: {}\n", error.what());
    return 1;
  }
}

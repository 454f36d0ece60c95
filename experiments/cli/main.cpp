#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "common/error.hpp"
#include "common/own_executable.hpp"
#include "common/redis/url.hpp"
#include "common/registry.hpp"
#include "common/threads/threads.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/sources.hpp"
#include "experiments/harness/machine/environment.hpp"
#include "experiments/harness/say.hpp"

namespace {

/// First call in main. Opens /dev/null in place of a closed stdin, stdout or stderr, so that no file or socket gets its
/// number. Also ignores SIGPIPE and SIGXFSZ, so that a failed write returns an error instead of killing the process.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    [[maybe_unused]] const int opened = open("/dev/null", O_RDWR);  // the lowest free number, which is `stream`
  }
  // Failed writes return an error instead. The limit on file size also applies to a store's memory (memfds).
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

/// Last call in main. Returns the exit code, or 1 instead of 0 if stdout could not be written completely. Reports that
/// failure unless the reader has closed the pipe.
int exit_code_after_output(int code) {
  errno = 0;
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (written) return code;
  if (errno != EPIPE)
    feedrate::say("feedrate: stdout: {}\n", errno != 0 ? std::strerror(errno) : "could not write all output");
  return code == 0 ? 1 : code;
}

/// The program with all experiments, and the one that only it has, because that takes long to build.
constexpr auto kFullProgram = "feedrate_full", kItsExperiment = "kernels";

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
  app.footer(fmt::format("{}, built next to feedrate, also has the experiment {}; feedrate runs it where needed.",
                         kFullProgram, kItsExperiment));
  feedrate::reject_unreadable_config(arguments);
  feedrate::Program program{app, arguments};
  using namespace feedrate;
  for (const auto add : {add_list, add_run, add_sweep, add_tune, add_capacity, add_limits, add_ab, add_ab_side,
                         add_worker, add_dlq, add_store, add_validate, add_helper}) {
    add(program);
  }
  for (const auto& [name, add] : Commands::instance().entries()) add(program);
  feedrate::reject_unknown_variables(app);
  try {
    std::vector<std::string> words(arguments.rbegin(), arguments.rend() - 1);  // CLI11 reads the words from the back
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
  return program.action();
}

/// Runs the program with all experiments, with the same arguments, if it has been built next to this one. It may know a
/// name that this program does not know. Returns otherwise.
void run_full_program(const std::vector<std::string>& arguments) {
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
  if (own.filename() != "feedrate") return;
  std::vector<std::string> words = arguments;
  execv((own.parent_path() / kFullProgram).c_str(), feedrate::raw_words(words).data());
  // As a subcommand, as the experiment, or as one of its specs.
  const auto names_it = [](const std::string& word) {
    const std::string value = word.substr(word.find('=') + 1);
    return value == kItsExperiment || value.starts_with(std::string(kItsExperiment) + "_");
  };
  if (std::ranges::none_of(arguments, names_it)) return;
  feedrate::say("feedrate: the experiment {} is in the program {}, which is not built: cmake --build {} --target {}\n",
                kItsExperiment, kFullProgram, own.parent_path().parent_path().string(), kFullProgram);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
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
    return exit_code_after_output(parse_and_act(app, arguments));
  } catch (const feedrate::BadInput& error) {
    run_full_program(arguments);
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

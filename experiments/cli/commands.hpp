#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace feedrate {

/// Action of the chosen subcommand, run after the command line is parsed; returns the exit code.
using Action = std::function<int()>;

/// Each function adds its subcommand and options to `app`, and sets `action` if the subcommand is chosen. `arguments`
/// is the complete command line.
void add_list(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action, const std::vector<std::string>& arguments);
void add_sweep(CLI::App& app, Action& action, const std::vector<std::string>& arguments);
void add_tune(CLI::App& app, Action& action, const std::vector<std::string>& arguments);
void add_capacity(CLI::App& app, Action& action, const std::vector<std::string>& arguments);
void add_limits(CLI::App& app, Action& action, const std::vector<std::string>& arguments);
void add_ab(CLI::App& app, Action& action, const std::vector<std::string>& arguments);
void add_worker(CLI::App& app, Action& action, const std::vector<std::string>& arguments);
void add_dlq(CLI::App& app, Action& action);
void add_store(CLI::App& app, Action& action, const std::vector<std::string>& arguments);
void add_validate(CLI::App& app, Action& action);
void add_helper(CLI::App& app, Action& action);  ///< hidden: processes that experiments and services start

}  // namespace feedrate

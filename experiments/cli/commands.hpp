#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace feedrate {

/// What a chosen subcommand does once the command line is read; returns the exit code.
using Action = std::function<int()>;

/// Each adds its subcommand and its options to `app`; `action` is set when it was chosen. `arguments` is the whole
/// command line.
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
void add_helper(CLI::App& app, Action& action);  ///< hidden: what experiments start

}  // namespace feedrate

#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "experiments/harness/measure/session.hpp"

namespace feedrate {

/// Option groups that several subcommands share. Each value can also be set by $FEEDRATE_<NAME> or in the JSON file
/// given by `--config`. The command line takes precedence over the environment, and the environment over the file.
struct CommonOptions {
  std::string device = "auto";
  unsigned gpu = 0;
  ServiceChoices services;
  RunSettings run;
  std::string config;

  /// Adds all options of commands that measure.
  void add(CLI::App&);
  void add_device(CLI::App&);
  /// Adds the options of the services in `names`, or of all services if it is empty; with `workers`, also the options
  /// that only workers have.
  void add_services(CLI::App&, const std::set<std::string>& names = {}, bool workers = false);
  std::unique_ptr<Session> session(const std::string& experiment, const std::vector<std::string>& arguments);
};

/// Adds `--queue`, `--payload`, … for the axes in `names`, or for all axes if it is empty, grouped by their owners.
/// Values are stored in `point`.
void add_axes(CLI::App&, const AxisTable&, Values& point, const std::set<std::string>& names = {});
/// Adds the option of one axis.
CLI::Option* add_value(CLI::App&, const Axis&, Values& values, const Value& standard);
/// Value of an option or its environment variable, read before the command line is parsed; empty if neither is set.
std::string early_value(const std::string& name, const std::vector<std::string>& arguments);

/// What is allowed for an option that has no effect on this experiment.
std::string no_effect_text(const std::string& experiment);

/// Adds an option in seconds (`--name 0.5`), from `least` to `most`.
CLI::Option* add_seconds(CLI::App& app, const std::string& name, double& seconds, double least, double most,
                         const std::string& help);
/// Adds an option in percent (`--name 2%` or 0.02), stored as a share above 0 and at most 1.
CLI::Option* add_percent(CLI::App& app, const std::string& name, double& share, const std::string& help);
/// Applies a spec's `run` to the options of the same names, which check its values. The command line, the environment
/// and the config file take precedence. `where` identifies the spec.
void apply_run(const Json& run, const std::string& where, CLI::App& command);

/// Adds an option and its environment variable: FEEDRATE_ followed by the name in capitals.
template <class T>
CLI::Option* add_option(CLI::App& app, const std::string& name, T& value, const std::string& help);
std::string variable_of(const std::string& option);

/// Reads option values, grouped by subcommand, from a JSON object: { "run": { "batch": 16, "payload": 64 } }. Throws
/// BadInput for a subcommand or option that `app` does not have.
std::shared_ptr<CLI::Config> json_config(const CLI::App& app);
/// Names of the visible subcommands, as listed in messages.
std::string subcommands_of(const CLI::App&);

template <class T>
CLI::Option* add_option(CLI::App& app, const std::string& name, T& value, const std::string& help) {
  return app.add_option("--" + name, value, help)->envname(variable_of(name))->capture_default_str();
}

}  // namespace feedrate

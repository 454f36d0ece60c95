#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "experiments/harness/measure/session.hpp"

namespace feedrate {

/// Option groups that several subcommands share. Each value may also come from $FEEDRATE_<NAME> or a JSON file given by
/// `--config`; the command line wins, then the environment.
struct CommonOptions {
  std::string device = "auto";
  unsigned gpu = 0;
  ServiceChoices services;
  RunSettings run;
  std::string config;

  void add_device(CLI::App&);
  /// Of the services in `names`, or of all when it is empty; with `workers` also those that only workers have.
  void add_services(CLI::App&, const std::set<std::string>& names = {}, bool workers = false);
  void add_run(CLI::App&);
  std::unique_ptr<Session> session(const std::string& experiment, const std::vector<std::string>& arguments);
};

/// `--queue`, `--payload`, … for the axes in `names`, or for all when it is empty, grouped by their owners; values land
/// in `point`.
void add_axes(CLI::App&, const AxisTable&, Values& point, const std::set<std::string>& names = {});
/// One of them.
CLI::Option* add_value(CLI::App&, const Axis&, Values& values, const Value& standard);
/// The value of `--experiment` before the command line is read: which axes there are hangs on it.
std::string experiment_of(const std::vector<std::string>& arguments);
/// Adds that option.
void add_experiment(CLI::App&, std::string& chosen);

/// `--name 0.5`, in seconds, within these bounds.
CLI::Option* add_seconds(CLI::App& app, const std::string& name, double& seconds, double least, double most,
                         const std::string& help);
/// `--name 2%` or 0.02, kept as a share above 0 and up to 1.
CLI::Option* add_percent(CLI::App& app, const std::string& name, double& share, const std::string& help);
/// Gives a spec's `run` to the options of the same names, within whose bounds it must be. The command line, the
/// environment and the config file win. `where` names the spec.
void apply_run(const Json& run, const std::string& where, CLI::App& command);

/// Adds an option with its environment variable: FEEDRATE_ and the name in capitals.
template <class T>
CLI::Option* add_option(CLI::App& app, const std::string& name, T& value, const std::string& help);
std::string variable_of(const std::string& option);

/// Reads option values by subcommand from a JSON object: { "run": { "batch": 16, "payload": 64 } }. Throws
/// BadInput for what `app` doesn't know.
std::shared_ptr<CLI::Config> json_config(const CLI::App& app);
/// Their names, as messages list them.
std::string subcommands_of(const CLI::App&);

template <class T>
CLI::Option* add_option(CLI::App& app, const std::string& name, T& value, const std::string& help) {
  return app.add_option("--" + name, value, help)->envname(variable_of(name))->capture_default_str();
}

}  // namespace feedrate

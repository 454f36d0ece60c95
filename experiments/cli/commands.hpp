#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "common/registry.hpp"

namespace feedrate {

/// The command line, to which commands add themselves.
struct Program {
  CLI::App& app;
  const std::vector<std::string>& arguments;  ///< the complete command line
  std::function<int()> action = {};  ///< the chosen subcommand's action, run after parsing; returns the exit code

  /// Makes `run` the action if this command is chosen.
  void on_choice(CLI::App& command, std::function<int()> run) {
    command.callback([this, run = std::move(run)] { action = run; });
  }
};

/// Each function adds its subcommand and options.
void add_list(Program&);
void add_run(Program&);
void add_sweep(Program&);
void add_tune(Program&);
void add_capacity(Program&);
void add_limits(Program&);
void add_ab(Program&);
void add_ab_side(Program&);
void add_worker(Program&);
void add_dlq(Program&);
void add_store(Program&);
void add_validate(Program&);
void add_helper(Program&);  ///< hidden: processes that experiments and services start

/// Further subcommands, of experiments.
using Commands = Registry<std::function<void(Program&)>>;
using CommandRegistration = Registration<std::function<void(Program&)>>;

}  // namespace feedrate

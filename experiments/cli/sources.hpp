#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "common/error.hpp"

/// Sources of option values: an error names the place where the user set the value.
namespace feedrate {

/// Returns the error. If its option is not on the command line, the message names the environment variable or the
/// config file's key instead.
BadInput with_source(const BadInput&, const CLI::App&, const std::vector<std::string>& arguments);
/// Does the same for a message from CLI11.
std::string with_source(const std::string& message, const CLI::App&, const std::vector<std::string>& arguments);

/// Whether the command line contains the option, with or without "=".
bool on_command_line(const std::string& option, const std::vector<std::string>& arguments);

/// Error for the first unexpected word of the command line: an unknown option, with the name of the most similar one,
/// or a stray word.
BadInput unexpected(const CLI::App&);

/// Throws BadInput if `--config` or its variable refers to a file that cannot be read.
void reject_unreadable_config(const std::vector<std::string>& arguments);

/// Removes the environment variables that Kubernetes and Docker set for a service whose name begins with "feedrate"
/// (FEEDRATE_SERVICE_HOST, FEEDRATE_REDIS_PORT=tcp://…): they are neither Feedrate's options nor a user's typing
/// errors.
void remove_service_links();

/// Throws BadInput for an unknown variable FEEDRATE_…: a misspelt name would otherwise leave its option unset.
void reject_unknown_variables(const CLI::App&);

}  // namespace feedrate

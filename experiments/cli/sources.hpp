#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "common/error.hpp"

/// Where a value came from: an error must name what its reader wrote.
namespace feedrate {

/// The error with the environment variable or the config file's key in place of an option that is not on the command
/// line.
BadInput with_source(const BadInput&, const CLI::App&, const std::vector<std::string>& arguments);
/// The same of a message of CLI11's.
std::string with_source(const std::string& message, const CLI::App&, const std::vector<std::string>& arguments);

/// Whether the words of the command line name the option, with or without "=".
bool on_command_line(const std::string& option, const std::vector<std::string>& arguments);

/// The first word of the command line that nothing takes: an option that there is not, with the nearest one's name, or
/// a stray word.
BadInput unexpected(const CLI::App&);

/// Throws BadInput where `--config` or its variable names no file that can be read.
void refuse_unreadable_config(const std::vector<std::string>& arguments);

/// Removes from the environment what Kubernetes and Docker put there for a service whose name begins with "feedrate"
/// (FEEDRATE_SERVICE_HOST, FEEDRATE_REDIS_PORT=tcp://…): these are neither options of ours nor a user's slips.
void remove_service_links();

/// Throws BadInput for a variable FEEDRATE_… that nothing reads: a slip would otherwise measure something else.
void refuse_unknown_variables(const CLI::App&);

}  // namespace feedrate

#include "experiments/cli/sources.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "common/edit_distance.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {
namespace {

/// Variables without an option, which the executable, the scripts and the tests use.
const std::set<std::string>& other_variables() {
  static const std::set<std::string> names{"FEEDRATE_SPECS",        "FEEDRATE_REDIS_SERVER",   "FEEDRATE_RESUME_WITH",
                                           "FEEDRATE_CUDA",         "FEEDRATE_ARCHITECTURES",  "FEEDRATE_WERROR",
                                           "FEEDRATE_EXECUTABLE",   "FEEDRATE_SOURCE_DIR",     "FEEDRATE_TAIL",
                                           "FEEDRATE_PROFILE_CELL", "FEEDRATE_GBENCH_COMPARE", "FEEDRATE_OPENBLAS",
                                           "FEEDRATE_PEERS_PYTHON"};
  return names;
}

bool is_set(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  return value != nullptr && *value != '\0';
}

/// Returns the subcommand on the command line, or `app` if there is none.
const CLI::App& chosen(const CLI::App& app, const std::vector<std::string>& arguments) {
  const auto all = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* each : all) {
    if (std::find(arguments.begin(), arguments.end(), each->get_name()) != arguments.end()) return *each;
  }
  return app;
}

std::string source_of(const std::string& option, const CLI::App& app, const std::vector<std::string>& arguments) {
  if (!option.starts_with("--") || on_command_line(option, arguments)) return option;
  const std::string name = option.substr(2), variable = variable_of(name);
  if (is_set(variable)) return "$" + variable;
  const std::string file = early_value("config", arguments);
  const auto config = nlohmann::json::parse(std::ifstream(file), nullptr, false);
  const std::string command = chosen(app, arguments).get_name();
  if (config.is_object() && config.contains(command) && config[command].is_object() && config[command].contains(name)) {
    return fmt::format("{}: {}.{}", file, command, name);
  }
  return option;
}

/// Returns "; did you mean NAME?" if one of the names is similar enough, else "". All names begin with `prefix`; `sign`
/// precedes the name in the message.
std::string nearest_text(const std::string& given, const std::set<std::string>& names, std::string_view prefix,
                         std::string_view sign = "") {
  constexpr std::size_t kNear = 3;  // a third of the letters may differ
  std::string nearest;
  for (const std::string& each : names) {
    if (nearest.empty() || edit_distance(given, each) < edit_distance(given, nearest)) nearest = each;
  }
  if (nearest.empty() || kNear * edit_distance(given, nearest) > given.size() - prefix.size()) return "";
  return fmt::format("; did you mean {}{}?", sign, nearest);
}

}  // namespace

bool on_command_line(const std::string& option, const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    return argument == option || argument.starts_with(option + "=");
  });
}

BadInput with_source(const BadInput& error, const CLI::App& app, const std::vector<std::string>& arguments) {
  return error.from(source_of(error.option(), app, arguments));
}

std::string with_source(const std::string& message, const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::size_t at = message.find("--");
  if (at == message.npos) return message;
  const std::size_t end = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-", at);
  const std::string option = message.substr(at, end - at);
  return message.substr(0, at) + source_of(option, app, arguments) + (end == message.npos ? "" : message.substr(end));
}

void remove_service_links() {
  // kubernetes.io, "Service": environment variables; docs.docker.com, "Legacy container links". The variable of
  // an option never has such an address as its value.
  static const std::regex link(
      "FEEDRATE_(.+_)?("
      "SERVICE_HOST=.*|SERVICE_PORT(_[A-Z0-9_]+)?=[0-9]+|PORT=(tcp|udp|sctp)://.*|"
      "PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR|START|END))?=.*|NAME=/[^/]+/[^/]+|ENV_.*)");
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (text.starts_with("FEEDRATE_") && std::regex_match(text, link)) names.push_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

void reject_unknown_variables(const CLI::App& app) {
  std::set<std::string> known = other_variables();
  const auto add = [&](const CLI::App& command) {
    for (const CLI::Option* option : command.get_options()) known.insert(option->get_envname());
  };
  add(app);
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) add(*each);
  known.erase("");
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable, name = text.substr(0, text.find('='));
    if (!name.starts_with("FEEDRATE_") || known.contains(name)) continue;
    throw BadInput(
        fmt::format("${}: no option has this variable{}", name, nearest_text(name, known, "FEEDRATE_", "$")));
  }
}

/// The experiments that have this axis, for a message; empty if there is none.
std::string experiments_text(const std::string& option) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : Experiments::instance().entries()) {
    const ExperimentInfo info(name);
    const auto& axes = info.axes().entries();
    if (std::ranges::any_of(axes, [&](const auto& each) { return "--" + each.axis.name == option; }))
      names.push_back(name);
  }
  return names.empty() ? "" : fmt::format("; it is an axis of --experiment {}", fmt::join(names, ", "));
}

BadInput unexpected(const CLI::App& app) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  const std::vector<std::string> words = app.remaining(true);
  const auto option = std::find_if(words.begin(), words.end(), [](const auto& word) { return word.starts_with("-"); });
  if (option == words.end()) {
    return BadInput(fmt::format("'{}': unexpected argument of `{}` (--help lists the arguments)", words.front(), name));
  }
  const std::string given = option->substr(0, option->find('='));
  std::set<std::string> names;
  for (const CLI::Option* each : command->get_options()) {
    for (const std::string& one : each->get_lnames()) names.insert("--" + one);
  }
  const std::string elsewhere = experiments_text(given);
  return BadInput(fmt::format("{}: `{}` has no such option{} (--help lists the options)", given, name,
                              elsewhere.empty() ? nearest_text(given, names, "--") : elsewhere));
}

void reject_unreadable_config(const std::vector<std::string>& arguments) {
  const std::string file = early_value("config", arguments);
  if (file.empty() || (std::filesystem::is_regular_file(file) && std::ifstream(file))) return;
  throw BadInput(on_command_line("--config", arguments) ? "--config" : "$" + variable_of("config"), file,
                 "a readable JSON file");
}

}  // namespace feedrate

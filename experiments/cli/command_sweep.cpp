#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "common/error.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/folder.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/harness/say.hpp"
#include "experiments/harness/sweep/sweep.hpp"
#include "experiments/harness/sweep/tuned_spec.hpp"

namespace feedrate {
namespace {

struct SweepOptions {
  CommonOptions common;
  FolderOptions folder;
  std::string profile_cell;
  std::optional<Tuning> tuning;  ///< of `tune`
};

/// Replaces this process by one that goes on with the sweep behind the cells that have rows.
void restart(const std::vector<std::string>& arguments, const std::filesystem::path& directory) {
  std::vector<std::string> words = arguments;
  // An earlier --out or --resume stays harmless only if it names the same directory: it is taken out.
  for (std::size_t i = 0; i < words.size();) {
    const bool pair = words[i] == "--out" || words[i] == "--resume";
    const bool joined = words[i].starts_with("--out=") || words[i].starts_with("--resume=");
    if (pair || joined) {
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i),
                  words.begin() + static_cast<std::ptrdiff_t>(std::min(words.size(), i + (pair ? 2 : 1))));
    } else {
      ++i;
    }
  }
  words.emplace_back("--resume");
  words.push_back(directory.string());
  std::vector<char*> raw;
  raw.reserve(words.size() + 1);
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  execv("/proc/self/exe", raw.data());
}

int sweep(SweepOptions& options, CLI::App& command, const std::vector<std::string>& arguments) {
  FolderOptions& folder = options.folder;
  if (folder.spec.empty() && !folder.resuming()) folder.spec = "quick";
  Spec spec = folder.load(options.common, command);
  if (spec.document.contains("capacity")) {
    throw BadInput("SPEC", spec.name, "a sweep's; this one is for `feedrate capacity " + spec.name + "`");
  }
  // A folder's own spec is tuned already.
  if (options.tuning && !folder.spec.empty()) spec = tuned(spec, *options.tuning);
  const auto directory = folder.directory(spec.name);
  auto session = options.common.session(spec.kind->name(), arguments);
  if (folder.dry_run) return plan_sweep(*session, spec);
  const auto start_again = [&] {
    session->services().stop();
    restart(arguments, directory);
  };
  session->experiment().connect(all_points(spec, *session));  // before a folder is made
  Results results = folder.open(directory, spec, *session);
  const bool cpu = session->device().kind() == "cpu";
  say("device {}: {}{}\nresults go to {}\n", session->device().kind(), session->device().info().name,
      cpu ? " (these are not GPU results)" : "", directory.string());
  const int code = run_sweep(*session, spec, results, {options.profile_cell, directory / "found.json", start_again});
  say("results in {}\n", directory.string());
  if (interrupted()) say("{}\n", resume_text(options.tuning ? "tune" : "sweep", directory));
  return code;
}

void add(CLI::App& app, Action& action, const std::vector<std::string>& arguments, const std::string& name,
         const std::string& help, std::optional<Tuning> tuning) {
  auto options = std::make_shared<SweepOptions>();
  options->tuning = std::move(tuning);
  CLI::App* command = app.add_subcommand(name, help);
  options->folder.add(*command, "quick");
  if (options->tuning) {
    add_seconds(*command, "seconds-each", options->tuning->seconds_each, 0.1, 3600,
                "wall-clock budget of every search");
    add_option(*command, "goal", options->tuning->goal,
               "what is to be as high as it can: a figure; default: the spec's, else the experiment's rate");
  }
  command->add_option("--profile-cell", options->profile_cell,
                      "profiler capture only around this cell (number or row id)");
  options->common.add_device(*command);
  options->common.add_services(*command);
  options->common.add_run(*command);
  command->callback([options, command, &action, &arguments] {
    action = [options, command, &arguments] { return sweep(*options, *command, arguments); };
  });
}

}  // namespace

void add_sweep(CLI::App& app, Action& action, const std::vector<std::string>& arguments) {
  add(app, action, arguments, "sweep", "measure every cell of a spec, into a results directory", {});
}

void add_tune(CLI::App& app, Action& action, const std::vector<std::string>& arguments) {
  add(app, action, arguments, "tune",
      "search each variant's best settings for a spec's questions with equal budgets, then measure the winners afresh",
      Tuning{});
}

}  // namespace feedrate

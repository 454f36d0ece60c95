#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "common/error.hpp"
#include "common/own_executable.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/folder.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/harness/say.hpp"
#include "experiments/harness/sweep/sweep.hpp"
#include "experiments/harness/sweep/tune.hpp"

namespace feedrate {
namespace {

struct SweepOptions {
  CommonOptions common;
  FolderOptions folder;
  std::string profile_cell;
  std::optional<Tuning> tuning;  ///< only for `tune`
};

/// Replaces this process with one that continues the sweep after the cells that already have rows.
void restart(const std::vector<std::string>& arguments, const std::filesystem::path& directory) {
  std::vector<std::string> words = launcher_words();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    // Drop any earlier --out or --resume: it would be harmless only if it named the same directory.
    const std::string& word = arguments[i];
    if (word.starts_with("--out=") || word.starts_with("--resume=")) continue;
    if (word == "--out" || word == "--resume") {
      ++i;
    } else {
      words.push_back(word);
    }
  }
  words.insert(words.end(), {"--resume", directory.string()});
  execv("/proc/self/exe", raw_words(words).data());
}

int sweep(SweepOptions& options, CLI::App& command, const std::vector<std::string>& arguments) {
  FolderOptions& folder = options.folder;
  Spec spec = folder.load(options.common, command);
  if (spec.document.contains("capacity")) {
    throw BadInput("SPEC", spec.name, "a spec for sweeps; this one is for `feedrate capacity " + spec.name + "`");
  }
  // The spec of a results folder is already tuned.
  if (options.tuning && (!folder.resuming() || !folder.spec.empty())) spec = tuned(spec, *options.tuning);
  const auto directory = folder.directory(spec.name);
  auto session = options.common.session(spec.info->name(), arguments);
  if (folder.dry_run) return plan_sweep(*session, spec);
  const auto start_again = [&] {
    session->services().stop();
    restart(arguments, directory);
  };
  session->connect(all_points(spec, *session));  // before the folder is created
  Results results = folder.open(directory, spec, *session);
  const bool cpu = session->device().kind() == "cpu";
  say("device {}: {}{}\nresults go to {}\n", session->device().kind(), session->device().info().name,
      cpu ? " (these are not GPU results)" : "", directory.string());
  const int code = run_sweep(*session, spec, results, {options.profile_cell, directory / "found.json", start_again});
  say("results in {}\n", directory.string());
  if (interrupted()) say("{}\n", resume_text(options.tuning ? "tune" : "sweep", directory));
  return code;
}

void add(Program& program, const std::string& name, const std::string& help, std::optional<Tuning> tuning) {
  auto options = std::make_shared<SweepOptions>();
  options->tuning = std::move(tuning);
  CLI::App* command = program.app.add_subcommand(name, help);
  options->folder.add(*command, "quick");
  if (options->tuning) {
    add_seconds(*command, "seconds-each", options->tuning->seconds_each, 0.1, 3600, "wall-clock budget per search");
    add_option(*command, "goal", options->tuning->goal,
               "figure to maximize; default: the spec's goal, else the experiment's rate");
  }
  command->add_option("--profile-cell", options->profile_cell,
                      "limit the profiler's capture to this cell (number or row id)");
  options->common.add(*command);
  program.on_choice(*command, [options, command, &program] { return sweep(*options, *command, program.arguments); });
}

}  // namespace

void add_sweep(Program& program) {
  add(program, "sweep", "measure every cell of a spec and write a results directory", {});
}

void add_tune(Program& program) {
  add(program, "tune",
      "search for each variant's best settings for a spec's questions with equal budgets, then remeasure the winners",
      Tuning{});
}

}  // namespace feedrate

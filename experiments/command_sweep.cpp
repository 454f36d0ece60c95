#include <fmt/format.h>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "experiments/commands.hpp"
#include "experiments/options.hpp"
#include "experiments/sweep.hpp"

namespace feedrate {
namespace {

struct Options {
  CommonOptions common;
  std::string spec, out, resume, profile_cell;
  std::vector<std::string> axes;
  bool dry_run = false;
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

int sweep(Options& options, CLI::App& command, const std::vector<std::string>& arguments) {
  namespace fs = std::filesystem;
  if (!options.resume.empty() && !fs::is_regular_file(fs::path(options.resume) / "spec.json")) {
    throw BadInput("--resume", options.resume, "a results directory with a spec.json");
  }
  if (!options.out.empty() && !options.resume.empty()) {
    throw BadInput("--out", options.out, "nothing, together with --resume");
  }
  if (options.spec.empty() && options.resume.empty()) options.spec = "quick";
  const fs::path file = options.spec.empty() ? fs::path(options.resume) / "spec.json" : find_spec(options.spec);
  Spec spec = load_spec(file, options.axes);
  apply_run(spec.document.value("run", Json::object()), file.string(), command);
  spec.document["run"] = run_of(options.common.run);  // a resume must know what the command line said
  fs::path directory = !options.resume.empty() ? options.resume : options.out;
  if (directory.empty()) directory = fs::path("results") / (utc_now(true) + "-" + spec.name);
  if (std::error_code none; options.resume.empty() && !options.dry_run && fs::exists(directory / "rows.jsonl", none)) {
    throw BadInput("--out", directory.string(), "a directory without rows; --resume goes on with one that has some");
  }
  auto session = options.common.session(arguments, false);
  const auto start_again = [&] {
    session->stop_redis();
    restart(arguments, directory);
  };
  return run_sweep(*session, spec,
                   {directory, !options.resume.empty(), options.dry_run, options.profile_cell, start_again});
}

}  // namespace

void add_sweep(CLI::App& app, Action& action, const std::vector<std::string>& arguments) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("sweep", "measure every cell of a spec, into a results directory");
  command->add_option("spec", options->spec, "a spec's name (experiments/specs) or file; default quick");
  command->add_option("--axis", options->axes, "name=values, replaces that axis of the spec; may be repeated")
      ->type_name("NAME=VALUES")
      ->take_all();
  command->add_option("--out", options->out, "results directory; default results/<time>-<spec>");
  command->add_option("--resume", options->resume, "go on in this results directory");
  command->add_flag("--dry-run", options->dry_run, "print the cells and the estimated time, measure nothing");
  command->add_option("--profile-cell", options->profile_cell,
                      "profiler capture only around this cell (number or row id)");
  options->common.add_device(*command);
  options->common.add_redis(*command);
  options->common.add_run(*command);
  command->callback([options, command, &action, &arguments] {
    action = [options, command, &arguments] { return sweep(*options, *command, arguments); };
  });
}

}  // namespace feedrate

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/folder.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/harness/say.hpp"
#include "experiments/harness/sweep/ab.hpp"
#include "experiments/harness/sweep/progress.hpp"
#include "experiments/harness/sweep/sweep.hpp"

namespace feedrate {
namespace {

namespace fs = std::filesystem;

struct AbOptions {
  CommonOptions common;
  FolderOptions folder;
  std::string other;
  std::vector<std::string> a_axes, b_axes;
  unsigned pairs = 20, restart_after = 2;
};

std::string own_executable() { return fs::read_symlink("/proc/self/exe").string(); }

/// Command line of one side: the device, services and settings of this command, with the side's own axes.
std::vector<std::string> words_of(const AbOptions& options, const std::string& executable, const fs::path& spec,
                                  const std::vector<std::string>& axes, const fs::path& out, bool again) {
  std::vector<std::string> words{executable, "ab-side", spec.string(), again ? "--resume" : "--out", out.string()};
  if (again) words.emplace_back("--resume-anyway");  // no other run writes to this folder
  words.insert(words.end(), {"--device", options.common.device, "--gpu", std::to_string(options.common.gpu)});
  for (std::string& word : options.common.services.words()) words.push_back(std::move(word));
  for (const std::string& axis : axes) words.insert(words.end(), {"--axis", axis});
  return words;
}

/// Measures the cells requested on stdin, one per line, and replies with the text to show in the terminal.
int ab_side(AbOptions& options, CLI::App& command, const std::vector<std::string>& arguments) {
  const Spec spec = options.folder.load(options.common, command);
  const auto directory = options.folder.directory(spec.name);
  auto session = options.common.session(spec.info->name(), arguments);
  const std::vector<Resolution> points = all_points(spec, *session);
  session->connect(points);
  Results results = options.folder.open(directory, spec, *session);
  results.begin(*session, points);
  Json names = Json::array();
  for (const Resolution& each : points) names.push_back(spec.info->text(each.values));
  std::cout << Json{{"points", names}}.dump() << std::endl;
  for (std::string line; !interrupted() && std::getline(std::cin, line);) {
    const Json asked = Json::parse(line);
    const Json row = results.measure(*session, points.at(asked.at("point")), asked.at("pair"), {},
                                     [&](Json& made) { made["ab"] = asked; });
    if (interrupted()) break;
    results.write(row);
    const auto rate = figure_of(row, spec.info->entry().rate);
    const std::string shown = rate ? spec.info->text(spec.info->entry().rate, *rate) : row["status"].get<std::string>();
    std::cout << Json{{"shown", shown}}.dump() << std::endl;
  }
  return interrupted() ? 130 : 0;
}

/// Number of points of one side. Throws BadInput if its axes do not fit the spec; the message names their option.
std::size_t points_of_side(const Spec& spec, const Overrides& axes) {
  try {
    return parse_spec(spec.document, spec.name, axes).points.size();
  } catch (const BadInput& error) {
    if (std::string(error.what()).starts_with(axes.option)) throw;
    throw BadInput(fmt::format("{} {}: {}", axes.option, fmt::join(axes.values, " "), error.what()));
  }
}

/// Checks the axes of both sides. Only `other` itself can check the axes of side A if it is another executable.
void check_sides(const AbOptions& options, const Spec& spec) {
  const std::size_t b = points_of_side(spec, {options.b_axes, "--b-axis"});
  if (!options.other.empty()) return;
  if (const std::size_t a = points_of_side(spec, {options.a_axes, "--a-axis"}); a != b) {
    throw BadInput(
        fmt::format("--a-axis gives {} points, but --b-axis {}; allowed: as many values on side A as on side B", a, b));
  }
}

/// The folder of a comparison. The destructor removes it, with the files of the sides, unless `keep` was called.
class Place {
 public:
  /// Throws BadInput if the folder already holds a comparison or cannot be created.
  explicit Place(const fs::path& out) : out_(out) {
    std::error_code none, failed;
    for (const char* side : {"a", "b"}) {
      if (fs::exists(out / side, none))
        throw BadInput("--out", out.string(), "a folder without the subfolders a and b");
    }
    for (fs::path missing = fs::absolute(out); !fs::exists(missing, none); missing = missing.parent_path()) {
      made_.push_back(missing);
    }
    if (!fs::create_directories(out, failed) && failed) {
      throw BadInput("--out", out.string(), fmt::format("a writable directory ({})", failed.message()));
    }
  }
  Place(const Place&) = delete;
  ~Place() {
    if (kept_) return;
    std::error_code ignored;
    for (const char* each : {"a", "b", "a.log", "b.log", "spec.json"}) fs::remove_all(out_ / each, ignored);
    for (const fs::path& each : made_) fs::remove(each, ignored);  // stays if another process has put files into it
  }
  void keep() { kept_ = true; }

 private:
  fs::path out_;
  std::vector<fs::path> made_;  // the folder and its parents that did not exist, innermost first
  bool kept_ = false;
};

int ab(AbOptions& options, CLI::App& command) {
  if (options.other.empty() && options.a_axes == options.b_axes) {
    throw BadInput("--other", "", "another executable, or different values of --a-axis and --b-axis");
  }
  if (!options.other.empty() && access(options.other.c_str(), X_OK) != 0) {
    throw BadInput("--other", options.other, "a feedrate executable");
  }
  const Spec spec = options.folder.load(options.common, command);
  if (spec.points.empty()) throw BadInput("SPEC", spec.name, "a spec with points; this one has only searches");
  if (options.folder.resuming())
    throw BadInput("--resume", options.folder.resume, "no value, because `ab` always starts new pairs");
  const std::uint64_t pairs = options.pairs + options.pairs % 2;
  const std::uint64_t per_start = options.restart_after + options.restart_after % 2;
  if (pairs <= per_start) {
    throw BadInput(
        "--pairs", std::to_string(options.pairs),
        fmt::format("more than --restart-after ({}), because the variance between starts needs at least two starts",
                    per_start));
  }
  check_sides(options, spec);
  constexpr double kStartSeconds = 2;  // for both sides together
  const double per_pair = 2 * (options.common.run.seconds + options.common.run.warmup_seconds);
  const std::uint64_t starts = (pairs + per_start - 1) / per_start;
  const double whole =
      per_pair * static_cast<double>(spec.points.size() * pairs) + kStartSeconds * static_cast<double>(starts);
  const fs::path out = options.folder.directory(spec.name + "-ab");
  std::optional<Place> place;
  if (!options.folder.dry_run) {
    place.emplace(out);
    write_whole(out / "spec.json", spec.document);
  }
  say("{} points, {} pairs each, in the order A B B A; about {:.0f} s; results in {}\n", spec.points.size(), pairs,
      whole, out.string());
  if (!place) return 0;
  // Both sides restart periodically, so that an effect that lasts for one process's lifetime does not count as a
  // difference between the sides.
  std::uint64_t number = 0;
  const auto side = [&](const char* name, const std::string& executable, const std::vector<std::string>& axes) {
    const fs::path folder = out / name, log = out / (std::string(name) + ".log");
    const std::string letter(1, static_cast<char>(name[0] - 'a' + 'A'));
    return std::make_unique<Side>(letter, words_of(options, executable, out / "spec.json", axes, folder, number != 0),
                                  log);
  };
  std::unique_ptr<Side> a, b;
  Json names;
  const auto start = [&](std::uint64_t now) {
    number = now;
    a.reset(), b.reset();
    a = side("a", options.other.empty() ? own_executable() : options.other, options.a_axes);
    const Json a_points = a->read().at("points");  // A has measured its limits by then
    b = side("b", own_executable(), options.b_axes);
    names = b->read().at("points");
    if (a_points.size() != names.size()) {
      throw BadInput(fmt::format("side A has {} points on this device, but side B {}; pairs need the same points",
                                 a_points.size(), names.size()));
    }
  };
  PairPlan plan{0, pairs, options.common.run.seed, per_start};
  try {
    start(0);
    place->keep();
    plan.points = names.size();
    Progress progress(*spec.info, plan.points * plan.pairs, per_pair);
    std::uint64_t done = 0;
    measure_pairs(
        plan,
        [&](std::uint64_t now) {
          if (now != 0) start(now);
        },
        [&](char letter, std::uint64_t point, std::uint64_t pair) {
          Side& asked = letter == 'a' ? *a : *b;
          asked.ask(point, pair, number);
          return asked.read();
        },
        [&](std::uint64_t point, std::uint64_t, const Json& from_a, const Json& from_b) {
          progress.show_now(fmt::format("[{}/{}] A {} · B {} · {}", ++done, plan.points * plan.pairs,
                                        from_a.at("shown").get<std::string>(), from_b.at("shown").get<std::string>(),
                                        names[point].get<std::string>()));
          progress.keep();
        },
        interrupted);
    progress.end();
  } catch (const Failure&) {  // Ctrl-C at a terminal reaches the sides as well
    place->keep();            // the sides' logs say more
    if (!interrupted()) throw;
  }
  a.reset(), b.reset();
  say("results in {}; verdicts: python -m analysis ab {}\n", out.string(), out.string());
  return interrupted() ? 130 : 0;
}

}  // namespace

void add_ab(Program& program) {
  auto options = std::make_shared<AbOptions>();
  CLI::App* command =
      program.app.add_subcommand("ab", "compare two executables, or two settings, in interleaved pairs");
  options->folder.add(*command, "quick");
  command->add_option("--other", options->other, "side A: another feedrate executable; side B is this one");
  command->add_option("--a-axis", options->a_axes, "name=values; replaces that axis on side A only; may be repeated")
      ->type_name("NAME=VALUES")
      ->take_all();
  command->add_option("--b-axis", options->b_axes, "name=values; replaces that axis on side B only; may be repeated")
      ->type_name("NAME=VALUES")
      ->take_all();
  command->add_option("--pairs", options->pairs, "pairs per point; rounded up to an even number")
      ->check(CLI::Range(2, 10000))
      ->capture_default_str();
  command
      ->add_option("--restart-after", options->restart_after,
                   "pairs per point between restarts of both executables; rounded up to an even number")
      ->check(CLI::Range(2, 10000))
      ->capture_default_str();
  options->common.add(*command);
  program.on_choice(*command, [options, command] { return ab(*options, *command); });

  auto side = std::make_shared<AbOptions>();
  CLI::App* hidden =
      program.app.add_subcommand("ab-side", "one side of `ab`; reads requests for cells from stdin")->group("");
  side->folder.add(*hidden, "quick");
  side->common.add(*hidden);
  program.on_choice(*hidden, [side, hidden, &program] { return ab_side(*side, *hidden, program.arguments); });
}

}  // namespace feedrate

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/folder.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/sources.hpp"
#include "experiments/harness/measure/statistics.hpp"
#include "experiments/harness/say.hpp"
#include "experiments/harness/sweep/ab.hpp"
#include "experiments/harness/sweep/ab_power.hpp"
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
  double minutes = 10, slice = 0.03, lead = 0.01;
  unsigned starts = 0;
};

/// Options of other commands that measure, which have no effect here.
constexpr const char* kOfOtherCommands[] = {
    "seconds",        "warmup",     "messages",         "repetitions", "until-precise", "throughput-within",
    "latency-within", "percentile", "most-repetitions", "time-limit",  "keep-disturbed"};

std::string own_executable() { return fs::read_symlink("/proc/self/exe").string(); }

/// Command line of one side: the device, services and settings of this command, with the side's own axes.
std::vector<std::string> words_of(const AbOptions& options, const Spec& spec, const std::string& executable,
                                  const fs::path& file, const std::vector<std::string>& axes, const fs::path& out,
                                  bool again) {
  std::vector<std::string> words{executable, "ab-side", file.string(), again ? "--resume" : "--out", out.string()};
  if (again) words.emplace_back("--resume-anyway");  // no other run writes to this folder
  words.insert(words.end(), {"--device", options.common.device, "--gpu", std::to_string(options.common.gpu),
                             "--seconds", fmt::format("{}", options.slice)});
  const auto& unused = spec.info->entry().unused_options;
  if (!unused.contains("warmup")) words.insert(words.end(), {"--warmup", fmt::format("{}", options.lead)});
  if (!unused.contains("messages")) words.insert(words.end(), {"--messages", "0"});
  for (std::string& word : options.common.services.words()) words.push_back(std::move(word));
  for (const std::string& axis : axes) words.insert(words.end(), {"--axis", axis});
  return words;
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
  bool kept() const { return kept_; }

 private:
  fs::path out_;
  std::vector<fs::path> made_;  // the folder and its parents that did not exist, innermost first
  bool kept_ = false;
};

/// Both sides' processes, and the requests to them.
class Sides {
 public:
  Sides(const AbOptions& options, const Spec& spec, fs::path out)
      : options_(options), spec_(spec), out_(std::move(out)) {}

  /// Starts both processes. Side B measures the limits at the first start, and A uses the same ones, so that both make
  /// the same choices.
  void start(unsigned number) {
    start_ = number;
    a_.reset(), b_.reset();
    b_ = process("b", own_executable(), options_.b_axes);
    if (number == 0) return learn(greeting_of(*b_, Json::array()));
    a_ = process("a", a_executable(), options_.a_axes);
    b_->write({{"limits", Json::array()}});
    greeting_of(*a_, Json::array());
    b_->read();
  }
  /// Completes the first start, after the device and its limits are known.
  void start_a() {
    a_ = process("a", a_executable(), options_.a_axes);
    const Json hello = greeting_of(*a_, limits_);
    const std::size_t a_points = hello.at("points").size();
    if (a_points != points_.size()) {
      throw BadInput(
          fmt::format("side A has {} points on this device, but side B {}; a comparison needs the same points",
                      a_points, points_.size()));
    }
    if (options_.other.empty() && hello.at("params") == params_) {
      const bool b = !options_.b_axes.empty();
      throw BadInput(b ? "--b-axis" : "--a-axis",
                     fmt::format("{}", fmt::join(b ? options_.b_axes : options_.a_axes, " ")),
                     "an axis that changes the points of this spec, so that the sides differ");
    }
  }
  Json slice(char side, std::uint64_t point, std::uint64_t block, unsigned place) {
    Side& asked = side == 'a' ? *a_ : *b_;
    return asked.ask({{"point", point}, {"start", start_}, {"block", block}, {"place", place}});
  }
  /// Ends a visit; returns the text for the terminal.
  std::string end(std::uint64_t point) {
    const Json request{{"point", point}, {"start", start_}};
    const Json a = a_->ask(request), b = b_->ask(request);
    return fmt::format("A {} · B {} · {}", a.at("shown").get<std::string>(), b.at("shown").get<std::string>(),
                       points_.at(point).get<std::string>());
  }
  const Json& points() const { return points_; }
  const std::vector<std::string>& variants() const { return variants_; }
  const std::string& device() const { return device_; }

 private:
  std::string a_executable() const { return options_.other.empty() ? own_executable() : options_.other; }
  std::unique_ptr<Side> process(const std::string& name, const std::string& executable,
                                const std::vector<std::string>& axes) {
    const std::string letter(1, static_cast<char>(name[0] - 'a' + 'A'));
    return std::make_unique<Side>(
        letter, words_of(options_, spec_, executable, out_ / "spec.json", axes, out_ / name, start_ != 0),
        out_ / (name + ".log"));
  }
  /// Throws BadInput if the other executable is no feedrate, or an incompatible one. Once it has answered, its end is a
  /// failure.
  Json greeting_of(Side& side, const Json& limits) {
    constexpr const char* kAllowed = "an executable that compares in slices, as this one does";
    Json hello;
    try {
      hello = side.ask({{"limits", limits}});
    } catch (const Failure& failure) {
      if (start_ != 0 || &side != a_.get() || options_.other.empty() || interrupted()) throw;
      throw BadInput("--other", options_.other, fmt::format("{} ({})", kAllowed, failure.what()));
    }
    if (!hello.is_object() || hello.value("version", 0u) != kAbVersion) {
      throw BadInput("--other", options_.other, kAllowed);
    }
    return hello;
  }
  /// Keeps what side B says of the points, by which the terminal names them. Only this executable has to say all of it.
  void learn(const Json& hello) {
    device_ = hello.at("device").get<std::string>();
    points_ = hello.at("points");
    params_ = hello.at("params");
    variants_ = hello.at("variants").get<std::vector<std::string>>();
    limits_ = hello.at("limits");
  }

  const AbOptions& options_;
  const Spec& spec_;
  fs::path out_;
  std::unique_ptr<Side> a_, b_;
  Json points_, params_, limits_;
  std::vector<std::string> variants_;
  std::string device_;
  unsigned start_ = 0;
};

/// Seconds of the shortest useful visit to a point. A slice sets its queue up and takes it down again.
double shortest_visit(const AbOptions& options) {
  constexpr double kSetup = 0.02;
  return 4 * kLeastBlocks * (options.slice + options.lead + kSetup);
}

/// Checks the options; returns the spec.
Spec checked(AbOptions& options, CLI::App& command, const std::vector<std::string>& arguments) {
  if (options.other.empty() && options.a_axes == options.b_axes) {
    throw BadInput("--other", "", "another executable, or different values of --a-axis and --b-axis");
  }
  if (!options.other.empty() && (!fs::is_regular_file(options.other) || access(options.other.c_str(), X_OK) != 0)) {
    throw BadInput("--other", options.other, "a feedrate executable");
  }
  for (const char* name : kOfOtherCommands) {
    const std::string option = fmt::format("--{}", name);
    if (on_command_line(option, arguments)) {  // a variable may be meant for other commands
      throw BadInput(option, command.get_option(option)->as<std::string>(),
                     "no value: `ab` measures slices; use --slice, --lead, --minutes and --starts");
    }
  }
  Spec spec = options.folder.load(options.common, command);
  if (!spec.searches.empty() || spec.document.contains("capacity")) {
    throw BadInput("SPEC", spec.name, "a spec of points, without searches");
  }
  if (options.folder.resuming())
    throw BadInput("--resume", options.folder.resume, "no value, because `ab` always starts anew");
  check_sides(options, spec);
  return spec;
}

void say_plan(const AbPlan& plan, const Sides& sides) {
  say("{} points, {} starts of both sides, about {:.1f} minutes{}\n", plan.points.size(), plan.starts,
      plan.seconds / 60,
      plan.starts < kStartsForInterval ? fmt::format("; fewer than {} starts give no interval", kStartsForInterval)
                                       : "");
  std::vector<std::string> left_out;
  for (std::uint64_t i = 0; i < sides.points().size(); ++i) {
    if (!std::ranges::binary_search(plan.points, i)) left_out.push_back(sides.points()[i].get<std::string>());
  }
  if (left_out.empty()) return;
  say("not compared, because --minutes is too short for all {} points:\n  {}\n", sides.points().size(),
      fmt::join(left_out, "\n  "));
}

/// Figures by which the terminal judges the progress: the rate, and the median of the time.
std::vector<std::string> judged_figures(const ExperimentInfo& info) {
  std::vector<std::string> names{info.entry().rate};
  if (!info.entry().time.empty()) names.push_back(info.entry().time + ".p50");
  return names;
}

/// A sentence that says which changes will be found; empty if these spreads say nothing about these points.
std::string what_is_found(const AbPlan& plan, const Spreads& spreads, const std::vector<std::string>& figures,
                          const std::vector<std::string>& variants, std::string_view differ_as) {
  if (plan.starts < kStartsForInterval) return "";
  const std::vector<std::string> lines = spreads.lines(figures, variants, plan.starts);
  if (lines.empty()) return "";
  return fmt::format(
      "if starts differ as {}, {} starts find in 80 % of the cases that one of the {} points has changed by more than "
      "1 %, if it has changed by at least the following, depending on the point:\n  {}",
      differ_as, plan.starts, plan.points.size(), fmt::join(lines, "\n  "));
}

/// Returns the number of failed slices.
std::uint64_t measure(const AbOptions& options, const Spec& spec, Place& place, const fs::path& out) {
  constexpr unsigned kPilot = 4;  // starts after which their variation is known well enough to say what can be found
  Sides sides(options, spec, out);
  sides.start(0);
  sides.start_a();
  AbPlan plan = plan_ab(sides.variants(), 60 * options.minutes, shortest_visit(options), options.starts);
  plan.seed = options.common.run.seed;
  say_plan(plan, sides);
  const std::vector<std::string> judged = judged_figures(*spec.info);
  std::vector<std::string> variants;  // of the points that are compared
  for (const std::uint64_t point : plan.points) variants.push_back(sides.variants().at(point));
  const Spreads reference = reference_spreads(spec.info->name(), sides.device());
  if (const std::string found = what_is_found(plan, reference, judged, variants, reference_trials()); !found.empty())
    say("{}\n", found);
  Progress progress(*spec.info, plan.points.size() * plan.starts, plan.seconds / static_cast<double>(plan.starts));
  Variation variation;
  std::map<char, std::map<std::string, std::vector<double>>> visit;  // values by side and figure
  std::uint64_t done = 0, failed = 0;
  const std::uint64_t began = now_ns();
  const auto medians = [&](char side) {
    Json typical = Json::object();
    for (const auto& [name, values] : visit[side]) typical[name] = median_of(values);
    return typical;
  };
  measure_slices(plan, {.start =
                            [&](unsigned number) {
                              if (number != 0) sides.start(number);
                              if (number != kPilot) return;
                              const Spreads pilot = variation.spreads(sides.variants());
                              const std::string found =
                                  what_is_found(plan, pilot, judged, variants, fmt::format("the first {}", kPilot));
                              if (found.empty()) return;
                              progress.show_now(found);
                              progress.keep();
                            },
                        .slice =
                            [&](char side, std::uint64_t point, std::uint64_t block, unsigned at) {
                              const Json slice = sides.slice(side, point, block, at);
                              place.keep();
                              const std::string status = slice.value("status", "");
                              failed += status == text_of(Status::failed) ? 1 : 0;
                              for (const std::string& name : judged) {
                                if (slice.contains("figures") && slice["figures"].contains(name))
                                  visit[side][name].push_back(slice["figures"][name]);
                              }
                              return status != text_of(Status::skipped) && status != text_of(Status::failed);
                            },
                        .end =
                            [&](std::uint64_t point) {
                              variation.add(point, medians('a'), medians('b'));
                              visit.clear();
                              progress.show_now(fmt::format("[{}/{}] {}", ++done, plan.points.size() * plan.starts,
                                                            sides.end(point)));
                              progress.keep();
                            },
                        .stop = interrupted,
                        .elapsed = [began] { return 1e-9 * static_cast<double>(now_ns() - began); }});
  progress.end();
  return failed;
}

int ab(AbOptions& options, CLI::App& command, const std::vector<std::string>& arguments) {
  const Spec spec = checked(options, command, arguments);
  const fs::path out = options.folder.directory(spec.name + "-ab");
  if (options.folder.dry_run) {
    const AbPlan plan = plan_ab(std::vector<std::string>(spec.points.size()), 60 * options.minutes,
                                shortest_visit(options), options.starts);
    say("{} of {} points, {} starts of both sides, about {:.1f} minutes; results in {}\n", plan.points.size(),
        spec.points.size(), plan.starts, options.minutes, out.string());
    return 0;
  }
  Place place(out);
  write_whole(out / "spec.json", spec.document);
  std::uint64_t failed = 0;
  try {
    failed = measure(options, spec, place, out);
  } catch (const Failure&) {  // Ctrl-C at a terminal reaches the sides as well
    if (!interrupted()) {
      place.keep();  // the sides' logs say more
      throw;
    }
  }
  if (!place.kept()) {
    say("interrupted: nothing measured\n");
    return 130;
  }
  say("results in {}; verdicts: python -m analysis ab {}\n", out.string(), out.string());
  if (failed != 0) say("{} visits ended with a failed slice; their rows give the reasons\n", failed);
  return interrupted() ? 130 : failed != 0 ? 1 : 0;
}

}  // namespace

void add_ab(Program& program) {
  auto options = std::make_shared<AbOptions>();
  CLI::App* command =
      program.app.add_subcommand("ab", "compare two executables, or two settings, in interleaved slices");
  options->folder.add(*command, "ab");
  command->add_option("--other", options->other, "side A: another feedrate executable; side B is this one");
  command->add_option("--a-axis", options->a_axes, "name=values; replaces that axis on side A only; may be repeated")
      ->type_name("NAME=VALUES")
      ->take_all();
  command->add_option("--b-axis", options->b_axes, "name=values; replaces that axis on side B only; may be repeated")
      ->type_name("NAME=VALUES")
      ->take_all();
  command
      ->add_option("--minutes", options->minutes, "time for all slices of all points; side A starts after the limits")
      ->check(CLI::Range(0.01, 10000.0))
      ->capture_default_str();
  command
      ->add_option(
          "--starts", options->starts,
          fmt::format("starts of both executables; 0: as many as are useful, at least {}. Fewer than {} give no "
                      "interval",
                      kLeastStarts, kStartsForInterval))
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  add_seconds(*command, "slice", options->slice, 0.001, 60, "timed part of a slice");
  add_seconds(*command, "lead", options->lead, 0, 60, "untimed part at the beginning of a slice");
  options->common.add(*command);
  const std::string hidden;
  for (const char* name : kOfOtherCommands) command->get_option(fmt::format("--{}", name))->group(hidden);
  for (const char* name : {"--resume", "--resume-anyway"}) command->get_option(name)->group(hidden);
  program.on_choice(*command, [options, command, &program] { return ab(*options, *command, program.arguments); });
}

}  // namespace feedrate

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/folder.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/harness/say.hpp"
#include "experiments/harness/sweep/capacities.hpp"
#include "experiments/harness/sweep/progress.hpp"

namespace feedrate {
namespace {

struct CapacityOptions {
  CommonOptions common;
  FolderOptions folder;
  std::vector<std::string> slos{"p99:1ms"};
  double resolution = 0.1, seconds_each = 0;
};

/// Estimated number of tries per search: bracketing, bisection, and blocks of two tries.
double probes_of(double resolution) {
  constexpr double kBracket = 3, kBlocks = 23;
  return kBracket + std::log2(std::log(4) / std::log1p(resolution)) + 2 * kBlocks;
}

std::size_t possible(const std::vector<Resolution>& points) {
  return static_cast<std::size_t>(
      std::ranges::count_if(points, [](const auto& each) { return each.impossible.empty(); }));
}

void print_plan(const Spec& spec, const std::vector<Resolution>& points, const std::vector<Slo>& slos,
                const CapacityOptions& options) {
  constexpr double kSetUpSeconds = 0.25;
  const RunSettings& run = options.common.run;
  const auto searches = static_cast<double>(run.repetitions * slos.size() * possible(points));
  const double seconds = searches * probes_of(options.resolution) * (run.seconds + run.warmup_seconds + kSetUpSeconds);
  std::string bounds;
  for (const Slo& slo : slos) bounds += " " + slo.text;
  say("{}: highest rate that meets{}, for {} points, {} search{} each;\n"
      "about {:.0f} s, more if rates are low or the boundary is not sharp{}\n",
      spec.name, bounds, points.size(), run.repetitions, run.repetitions == 1 ? "" : "es", seconds,
      options.seconds_each > 0 ? fmt::format("; at most {:.0f} s", searches * options.seconds_each) : "");
  for (const Resolution& each : points) {
    say("  {}{}\n", text_without_rate(*spec.info, each),
        each.impossible.empty() ? "" : " · skipped: " + each.impossible);
  }
  if (const auto text = crowded_text(*spec.info, points, available_cores()); !text.empty()) say("{}\n", text);
}

int capacity(CapacityOptions& options, CLI::App& command, const std::vector<std::string>& arguments) {
  FolderOptions& folder = options.folder;
  Spec spec = folder.load(options.common, command);
  if (options.common.run.seconds <= 0) throw BadInput("--seconds", "0", "more than 0 seconds per probe");
  // A resume needs the settings from the command line.
  Json& search = spec.document["capacity"];
  if (!search.is_object()) search = Json::object();
  if (command.count("--slo") == 0) options.slos = search.value("slo", options.slos);
  if (command.count("--resolution") == 0) options.resolution = search.value("resolution", options.resolution);
  if (command.count("--seconds-each") == 0 && search.contains("seconds_each")) {
    const Json& most = search["seconds_each"];
    if (!most.is_number() || most < 0) throw BadInput("capacity.seconds_each", most.dump(), "0 seconds or more");
    options.seconds_each = most;
  }
  search = {{"slo", options.slos}, {"resolution", options.resolution}, {"seconds_each", options.seconds_each}};
  std::vector<Slo> slos;
  for (const std::string& text : options.slos) {
    slos.push_back(parse_slo(text));
    slos.back().figure = spec.info->entry().time;
  }
  std::stable_sort(slos.begin(), slos.end(), [](const Slo& a, const Slo& b) { return a.bound_ns < b.bound_ns; });
  const auto directory = folder.directory(spec.name);
  const auto& load = spec.info->entry().searching.load;
  if (!load)
    throw BadInput("SPEC", spec.name, "an experiment with an offered-load axis; " + spec.info->name() + " has none");
  auto session = options.common.session(spec.info->name(), arguments);
  for (Values& point : spec.points) point = load->open(point);
  std::vector<Resolution> points = distinct(spec.points, *session);
  if (folder.dry_run) session->experiment().check(points);
  print_plan(spec, points, slos, options);
  if (folder.dry_run) return 0;
  session->connect(points);
  Results results = folder.open(directory, spec, *session);
  results.begin(*session, points);
  const std::size_t searches = options.common.run.repetitions * slos.size() * possible(points);
  Capacities capacities(*session, results, points, options.resolution, options.seconds_each, searches);
  for (unsigned repetition = 0; repetition < options.common.run.repetitions; ++repetition) {
    std::mt19937_64 random(options.common.run.seed * 1000 + repetition);
    std::shuffle(points.begin(), points.end(), random);
    for (const Resolution& point : points) capacities.find(point, slos, repetition);
  }
  std::mt19937_64 random(options.common.run.seed * 1000 + options.common.run.repetitions);
  if (!interrupted()) capacities.settle(random);
  results.end(*session);
  capacities.end();
  capacities.print_table();
  if (const auto text = crowded_text(*spec.info, points, available_cores()); !text.empty()) say("{}\n", text);
  if (session->device().kind() == "cpu") say("On the CPU device: these are not GPU results.\n");
  say("results in {}\n", directory.string());
  if (interrupted()) say("{}\n", resume_text("capacity", directory));
  return interrupted() ? 130 : 0;
}

}  // namespace

void add_capacity(Program& program) {
  auto options = std::make_shared<CapacityOptions>();
  CLI::App* command = program.app.add_subcommand("capacity", "find the highest rate that meets a latency bound");
  options->folder.add(*command, "capacity");
  command->add_option("--slo", options->slos, "latency bound as PERCENTILE:TIME, for example p99:50us; may be repeated")
      ->type_name("SLO")
      ->take_all()
      ->capture_default_str();
  add_percent(*command, "resolution", options->resolution,
              "maximum relative distance between the two rates that bracket the answer");
  add_seconds(*command, "seconds-each", options->seconds_each, 0, 86400,
              "time limit per search, whose answer may then be undecided; 0: no limit");
  options->common.add(*command);
  program.on_choice(*command, [options, command, &program] { return capacity(*options, *command, program.arguments); });
}

}  // namespace feedrate

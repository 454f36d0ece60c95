#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/error.hpp"
#include "common/redis/url.hpp"
#include "common/threads/threads.hpp"
#include "common/units.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/sources.hpp"
#include "experiments/harness/measure/statistics.hpp"
#include "experiments/harness/say.hpp"
#include "experiments/harness/sweep/progress.hpp"
#include "experiments/harness/sweep/recorder.hpp"
#include "experiments/harness/sweep/repeats.hpp"
#include "experiments/harness/timeline/cell_timeline.hpp"

namespace feedrate {
namespace {

struct RunOptions {
  CommonOptions common;
  std::string experiment;
  Values point;
  bool json = false;
  std::string out, trace;
};

void print_table(const ExperimentInfo& info, const Json& row) {
  const auto figures = info.lines(row);
  std::size_t width = 12;
  for (const auto& [name, text] : figures) width = std::max(width, name.size());
  const auto line = [&](const std::string& name, const std::string& value) {
    fmt::print("  {:<{}}{}\n", name, width + 2, value);
  };
  fmt::print("{}", row["status"].get<std::string>());
  if (row["status"] != "ok") fmt::print(": {}", row["reason"].get<std::string>());
  fmt::print("\n");
  std::string params;
  for (const auto& [key, value] : row["params"].items()) {
    if (value != 0 && value != "none") {
      params += fmt::format("{}={} ", key, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  line("point", params);
  for (const auto& [name, text] : figures) line(name, text);
  if (!row.contains("figures")) return;
  if (row.contains("gpu_use")) {
    const Json& use = row["gpu_use"];
    line("GPU", fmt::format("busy {:.0f} %, kernels {:.0f} %, copies {:.0f} %, both at once {:.0f} %, longest gap {}",
                            100 * use["busy_share"].get<double>(), 100 * use["kernel_share"].get<double>(),
                            100 * use["copy_share"].get<double>(), 100 * use["overlap_share"].get<double>(),
                            format_ns(use["idle_gaps_ns"]["max"])));
  }
  const Json& cost = row["cost"];
  line("cost", fmt::format("{} host threads, {} SMs{}", cost["host_threads"].dump(), cost["sms"].dump(),
                           cost.contains("delivery") ? ", delivery " + cost["delivery"].get<std::string>() : ""));
}

/// Prints the median and the range of the repetitions whose status is `ok`.
void print_summary(const ExperimentInfo& info, const std::vector<Json>& rows) {
  const ExperimentEntry& entry = info.entry();
  const auto ok = std::count_if(rows.begin(), rows.end(), [](const Json& row) { return row["status"] == "ok"; });
  if (rows.size() < 2 || ok == 0) return;
  fmt::print("{} repetitions, {} ok: median (lowest to highest)\n", rows.size(), ok);
  const auto line = [&](const char* name, const std::string& figure, double unstable) {
    std::vector<double> values;
    for (const Json& row : rows) {
      if (const auto value = figure_of(row, figure); value && row["status"] == "ok") values.push_back(*value);
    }
    if (values.empty()) return;
    const auto [lowest, highest] = std::ranges::minmax(values);
    fmt::print("  {:<14}{} ({} to {}){}\n", name, info.text(figure, median_of(values)), info.text(figure, lowest),
               info.text(figure, highest), spread_of(values) >= unstable ? ", unstable" : "");
  };
  line("throughput", entry.rate, kUnstable);
  line("p50", entry.time + ".p50", kUnstable);
  line("p99", entry.time + ".p99", kUnstableTail);
}

/// Throws BadInput if the point is impossible or if an option has no effect on it. A single point is requested on
/// purpose, so it must not be skipped silently.
void insist(const ExperimentInfo& info, const Resolution& cell, const CLI::App& app) {
  for (const auto& [axis, owners] : info.axes().entries()) {
    const std::string option = "--" + axis.name;
    if (app.count(option) == 0) continue;
    const auto given = app[option]->as<std::string>();
    if (is_none(axis.read(given))) continue;
    if (const auto unused = cell.unused.find(axis.name); unused != cell.unused.end()) {
      throw BadInput(option, given, unused->second);
    }
    if (!owners.empty() && !cell.values.contains(axis.name)) {
      throw BadInput(
          option, given,
          fmt::format("only with {}; {} has no such axis", fmt::join(owners, ", "), info.variant(cell.values)));
    }
  }
  if (!cell.impossible.empty()) throw BadInput(cell.impossible);
}

int run(RunOptions& options, const CLI::App& app, const std::vector<std::string>& arguments) {
  const ExperimentInfo chosen(options.experiment);
  for (const auto& [name, value] : {std::pair<std::string, std::string>("trace", options.trace),
                                    {"external-worker", options.common.run.external_worker ? "true" : ""}}) {
    if (!value.empty() && chosen.entry().unused_options.contains(name)) {
      throw BadInput("--" + name, value, no_effect_text(options.experiment));
    }
  }
  const std::string device = text_of(chosen.axes().value(options.point, "device"));
  options.common.device = device;
  std::optional<CellTimeline> timeline;  // must outlive the device
  if (!options.trace.empty()) {
    options.common.run.traced = device != "cpu" && cuda_unavailable().empty();
    timeline.emplace(options.trace, options.common.run.traced);
  }
  auto session = options.common.session(options.experiment, arguments);
  if (options.common.run.profiled && session->device().kind() == "cpu") {
    throw BadInput("--profile", "", "only with --device cuda and a GPU, because the CUDA profiler captures");
  }
  const ExperimentInfo& info = session->info();
  const std::vector<Resolution> cells{session->resolve(options.point)};
  const Resolution& cell = cells.front();
  insist(info, cell, app);
  session->connect(cells);
  for (const auto& [service, values] : options.common.services.values) {
    const std::string option = option_of(service);
    if (session->services().used(service) || !on_command_line(option, arguments)) continue;
    throw BadInput(option, redis::without_password(text_of(values.at(option.substr(2)))),
                   fmt::format("only for a point that uses {}; {} does not", service, info.variant(cell.values)));
  }
  std::unique_ptr<Recorder> recorder;
  if (!options.out.empty()) recorder = std::make_unique<Recorder>(options.out);
  if (const auto text = crowded_text(info, cells, available_cores()); !text.empty()) {
    say("{}\n", text);
  }
  if (session->device().kind() == "cpu") say("On the CPU device: these are not GPU results.\n");
  session->measure_limits(cells);
  const auto write = [&](const Json& row) {
    if (recorder) recorder->write(row);
    if (options.json) fmt::print("{}\n", dumped(row));
  };
  write(session->run_row());
  int code = 0;
  std::vector<Json> rows;
  Repeats repeats(options.common.run, info.entry());
  for (unsigned repetition = 0; !repeats.enough() && !interrupted(); ++repetition) {
    Json row = session->run_cell(cell, repetition, timeline && repetition == 0 ? &*timeline : nullptr);
    if (Json stop = repeats.add(row); !stop.empty()) row["stop"] = std::move(stop);
    write(row);
    if (!options.json) print_table(info, row);
    if (row["status"] == "failed") code = 1;
    rows.push_back(std::move(row));
  }
  if (!options.json) print_summary(info, rows);
  return interrupted() ? 130 : code;
}

}  // namespace

void add_run(Program& program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = program.app.add_subcommand("run", "measure one point");
  options->experiment =
      early_value("experiment", program.arguments);  // read early, because the set of axes depends on it
  if (options->experiment.empty()) options->experiment = kStandardExperiment;
  add_option(*command, "experiment", options->experiment, "experiment to measure: " + Experiments::instance().names());
  // An unknown name is reported when the command runs; until then the standard experiment's axes apply.
  const bool known = Experiments::instance().entries().contains(options->experiment);
  add_axes(*command, ExperimentInfo(known ? options->experiment : kStandardExperiment).axes(), options->point);
  options->common.add(*command);
  command->add_flag("--external-worker", options->common.run.external_worker,
                    "send the load to a `feedrate worker` in another process");
  command->add_flag("--json", options->json, "print the row instead of a table");
  command->add_option("--out", options->out, "append the row to this JSONL file");
  command->add_flag("--profile", options->common.run.profiled,
                    "limit an attached profiler's capture to the timed phases (nsys: --capture-range=cudaProfilerApi)");
  command->add_option("--trace", options->trace,
                      "write a timeline of the first repetition to this file, for ui.perfetto.dev or chrome://tracing");
  program.on_choice(*command, [options, command, &program] { return run(*options, *command, program.arguments); });
}

}  // namespace feedrate

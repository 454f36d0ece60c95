#include <fmt/format.h>

#include "common/units.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/feeding/axes.hpp"
#include "experiments/harness/limits/device_limits.hpp"
#include "experiments/harness/say.hpp"
#include "experiments/harness/sweep/recorder.hpp"
#include "variants/feeding/queue.hpp"

namespace feedrate {
namespace {

struct LimitOptions {
  CommonOptions common;
  bool json = false;
  std::string out;
};

/// "gpu 0", "link host gpu0", "host".
std::string text_of_scope(const Json& scope) {
  const std::string which = scope.value("which", "");
  return scope.at("of").get<std::string>() + (which.empty() ? "" : " " + which);
}

int limits(LimitOptions& options, const std::vector<std::string>& arguments) {
  const auto session = options.common.session(kStandardExperiment, arguments);
  std::vector<Resolution> points;
  std::map<std::string, std::string> excluded;
  for (const auto& [name, entry] : Queues::instance().entries()) {
    Point point;
    point.queue = name;
    if (const std::string why = options.common.services.unavailable_reason(entry.service); !why.empty()) {
      excluded[entry.service] = why;
    } else {
      points.push_back(session->resolve(values_of(point)));
    }
  }
  session->connect(points);
  std::unique_ptr<Recorder> recorder;
  if (!options.out.empty()) recorder = std::make_unique<Recorder>(options.out);
  for (const auto& [service, why] : excluded) say("limits of {} are skipped: {}\n", service, why);
  const unsigned gpus = session->device().kind() == "cuda" ? gpu_count() : 0;
  const std::vector<Json> rows = session->measure_limits(points, [gpus](LimitList& list) {
    if (gpus > 1) add_limits_of_all_gpus(list, gpus);
  });
  const Json run = session->run_row();
  if (recorder) recorder->write(run);
  if (options.json) fmt::print("{}\n", dumped(run));
  for (const Json& row : rows) {
    if (recorder) recorder->write(row);
    const Json& limit = row["limit"];
    if (options.json) {
      fmt::print("{}\n", dumped(row));
    } else {
      const std::string unit = limit["unit"];
      const double value = limit["value"];
      fmt::print("{:<36} {:>12}  {:<11} {}\n", limit["name"].get<std::string>(),
                 unit == "ns" ? format_ns(value) : format_si(value) + (unit == "bytes/s" ? "B/s" : "/s"),
                 text_of_scope(limit["scope"]), limit["method"].get<std::string>());
    }
  }
  return 0;
}

}  // namespace

void add_limits(Program& program) {
  auto options = std::make_shared<LimitOptions>();
  CLI::App* command =
      program.app.add_subcommand("limits", "measure the limits of this machine: floors of times, ceilings of rates");
  command->alias("floors");  // former name
  options->common.add_device(*command);
  options->common.add_services(*command);
  command->add_flag("--json", options->json, "print rows instead of a table");
  command->add_option("--out", options->out, "append the rows to this JSONL file");
  program.on_choice(*command, [options, &program] { return limits(*options, program.arguments); });
}

}  // namespace feedrate

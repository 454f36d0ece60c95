#include <fmt/format.h>

#include <algorithm>

#include "common/error.hpp"
#include "common/threads.hpp"
#include "common/units.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/progress.hpp"
#include "experiments/sweep/recorder.hpp"
#include "experiments/sweep/repeats.hpp"
#include "experiments/feeding/schedule.hpp"
#include "variants/queue.hpp"

namespace feedrate {
namespace {

struct RunOptions {
  CommonOptions common;
  Point point;
  bool json = false;
  std::string out, trace;
};

void print_table(const Json& row) {
  const auto line = [](const std::string& name, const std::string& value) { fmt::print("  {:<14}{}\n", name, value); };
  const Json& counts = row["counts"];
  fmt::print("{}", row["status"].get<std::string>());
  if (row["status"] != "ok") fmt::print(": {}", row["reason"].get<std::string>());
  fmt::print("\n");
  std::string params;
  for (const auto& [key, value] : row["params"].items()) {
    if (value != 0 && value != kNoTransfer)
      params += fmt::format("{}={} ", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  line("point", params);
  line("messages", fmt::format("{} sent, {} received, {} lost, {} duplicated, {} corrupted, {} reordered",
                               counts["sent"].dump(), counts["received"].dump(), counts["lost"].dump(),
                               counts["duplicated"].dump(), counts["corrupted"].dump(), counts["reordered"].dump()));
  if (!row.contains("throughput")) return;
  line("throughput", fmt::format("{}, {}B/s of payload each way", format_rate(row["throughput"]["messages_per_second"]),
                                 format_si(row["throughput"]["bytes_per_second"])));
  const Json& latency = row["latency_ns"];
  const bool open = row.contains("load");
  line(open ? "response" : "latency",
       fmt::format("p50 {}, p90 {}, p99 {}, p99.9 {}, max {} ({} samples, every {})", format_ns(latency["p50"]),
                   format_ns(latency["p90"]), format_ns(latency["p99"]), format_ns(latency["p999"]),
                   format_ns(latency["max"]), latency["samples"].dump(), latency["sampled_every"].dump()));
  if (open) {
    const auto parts = [](const Json& part) {
      return fmt::format("p50 {}, p99 {}, max {}", format_ns(part["p50"]), format_ns(part["p99"]),
                         format_ns(part["max"]));
    };
    const Json& load = row["load"];
    line("service", parts(row["service_ns"]));
    line("send lag", fmt::format("{}; of it the generator's own p50 {}, p99 {}", parts(row["send_lag_ns"]),
                                 format_ns(load["own_lag_ns"]["p50"]), format_ns(load["own_lag_ns"]["p99"])));
    line("backlog", fmt::format("{:.0f} messages at the end, {:.0f} at most; {} of {} due were never sent",
                                load["backlog"]["end"].get<double>(), load["backlog"]["max"].get<double>(),
                                load["unsent"].dump(), load["due"].dump()));
  }
  const Json& bound = row["bound"];
  if (bound.contains("throughput")) {
    line("of its floor", fmt::format("throughput {:.1f} % of {}", 100 * bound["throughput"]["ratio"].get<double>(),
                                     bound["throughput"]["floor"].get<std::string>()));
  }
  if (bound.contains("latency")) {
    line("", fmt::format("p50 {:.2f} × {}", bound["latency"]["ratio"].get<double>(),
                         bound["latency"]["floor"].get<std::string>()));
  }
  if (row.contains("gpu_use")) {
    const Json& use = row["gpu_use"];
    line("GPU", fmt::format("busy {:.0f} %, kernels {:.0f} %, copies {:.0f} %, both at once {:.0f} %, longest gap {}",
                            100 * use["busy_share"].get<double>(), 100 * use["kernel_share"].get<double>(),
                            100 * use["copy_share"].get<double>(), 100 * use["overlap_share"].get<double>(),
                            format_ns(use["idle_gaps_ns"]["max"])));
  }
  if (bound.contains("driver")) {
    line("", fmt::format("{:.1f} % of what the driver alone reaches", 100 * bound["driver"]["ratio"].get<double>()));
  }
  line("cost", fmt::format("{} host threads, {} SMs, delivery {}", row["cost"]["host_threads"].dump(),
                           row["cost"]["sms"].dump(), row["cost"]["delivery"].get<std::string>()));
}

/// The median of several repetitions and their range, of those that were measured whole.
void print_summary(const std::vector<Json>& rows) {
  std::vector<double> throughputs, p50s, p99s;
  for (const Json& row : rows) {
    if (row["status"] != "ok") continue;
    throughputs.push_back(row["throughput"]["messages_per_second"]);
    p50s.push_back(row["latency_ns"]["p50"]);
    p99s.push_back(row["latency_ns"]["p99"]);
  }
  if (rows.size() < 2 || throughputs.empty()) return;
  fmt::print("of {} repetitions, {} ok: median (least to greatest)\n", rows.size(), throughputs.size());
  const auto line = [](const char* name, std::vector<double>& values, const auto& text, double unstable) {
    std::sort(values.begin(), values.end());
    const double median = (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
    fmt::print("  {:<14}{} ({} to {}){}\n", name, text(median), text(values.front()), text(values.back()),
               spread_of(values) >= unstable ? ", unstable" : "");
  };
  line("throughput", throughputs, format_rate, kUnstableThroughput);
  line("p50", p50s, format_ns, kUnstableP50);
  line("p99", p99s, format_ns, kUnstableP99);
}

/// What the user asked for must be possible, not merely skipped: it is one point, named on purpose.
void insist(const RunOptions& options, const Resolution& cell, const CLI::App& app) {
  const auto& queue = Queues::instance().get("--queue", cell.point.queue);
  if (app.count("--transfer") != 0 && !queue.uses_transfer && options.point.transfer != kNoTransfer) {
    throw BadInput("--transfer", options.point.transfer,
                   fmt::format("none (queue {} moves messages itself)", cell.point.queue));
  }
  if (options.common.run.external_worker && !queue.make_broker) {
    throw BadInput("--external-worker", cell.point.queue,
                   "queues that other processes reach: redis_list, redis_stream");
  }
  if (options.common.run.external_worker && options.common.redis.url.empty()) {
    throw BadInput("--redis", "", "a URL: an external worker can't know a private server");
  }
  if (!is_open(options.point)) {
    for (const char* name : {"--rate", "--payload-mix", "--priority-mix", "--burst-us", "--pause-us", "--trace-file"}) {
      if (app.count(name) != 0) throw BadInput(name, app[name]->as<std::string>(), "with --arrivals other than closed");
    }
  }
  if (!cell.impossible.empty()) throw BadInput(cell.impossible);
}

int run(RunOptions& options, const CLI::App& app, const std::vector<std::string>& arguments) {
  options.common.device = options.point.device;
  std::optional<CellTrace> trace;  // until the device is gone
  if (!options.trace.empty()) {
    options.common.run.traced = options.point.device != "cpu" && cuda_unavailable().empty();
    trace.emplace(options.trace, options.common.run.traced);
  }
  auto session = options.common.session(arguments, Queues::instance().get("--queue", options.point.queue).uses_redis);
  Resolution cell = resolve(options.point, session->device());
  insist(options, cell, app);
  std::unique_ptr<Recorder> recorder;
  if (!options.out.empty()) recorder = std::make_unique<Recorder>(options.out);
  if (const auto text = crowded_text({cell}, available_cores()); !text.empty()) fmt::print(stderr, "{}\n", text);
  if (session->device().kind() == "cpu") fmt::print(stderr, "On the CPU device: these are not GPU results.\n");
  session->measure_floors(Queues::instance().get("--queue", cell.point.queue).uses_redis);
  int code = 0;
  std::vector<Json> rows;
  Repeats repeats(options.common.run);
  for (unsigned repetition = 0; !repeats.enough() && !interrupted(); ++repetition) {
    Json row = session->run_cell(cell, repetition, trace && repetition == 0 ? &*trace : nullptr);
    if (Json stop = repeats.add(row); !stop.empty()) row["stop"] = std::move(stop);
    if (recorder) recorder->write(row);
    if (options.json) {
      fmt::print("{}\n", row.dump());
    } else {
      print_table(row);
    }
    if (row["status"] == "failed") code = 1;
    rows.push_back(std::move(row));
  }
  if (!options.json) print_summary(rows);
  return interrupted() ? 130 : code;
}

}  // namespace

void add_run(CLI::App& app, Action& action, const std::vector<std::string>& arguments) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "measure one point");
  add_axes(*command, options->point);
  options->common.add_device(*command);
  options->common.add_redis(*command);
  options->common.add_run(*command);
  command->add_flag("--external-worker", options->common.run.external_worker,
                    "load a `feedrate worker` in another process");
  command->add_flag("--json", options->json, "print the row instead of a table");
  command->add_option("--out", options->out, "append the row to this JSONL file");
  command->add_option("--trace", options->trace,
                      "write a timeline of the first repetition there, for ui.perfetto.dev or chrome://tracing");
  command->callback([options, command, &action, &arguments] {
    action = [options, command, &arguments] { return run(*options, *command, arguments); };
  });
}

}  // namespace feedrate

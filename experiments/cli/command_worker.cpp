#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/utf8.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/daemons/daemon.hpp"
#include "experiments/daemons/metrics.hpp"
#include "experiments/feeding/feeding.hpp"
#include "experiments/harness/machine/gpu_sample.hpp"
#include "variants/feeding/queue_watch.hpp"
#include "variants/feeding/worker.hpp"
#include "variants/feeding/worker_metrics.hpp"

namespace feedrate {
namespace {

struct WorkerOptions {
  CommonOptions common;
  Values point{{"queue", "redis_list"}};
  std::string name;
  std::string metrics;
  std::string log = "text";
  bool supervise = false;
  double reconnect_seconds = 60;
};

constexpr double kFirstPause = 0.05, kLongestPause = 2;  // seconds between two attempts to reach the server

/// Axes that a worker accepts: no load axes, and only the queue axes of queues that a worker can serve.
std::set<std::string> axes_of_workers() {
  std::set<std::string> names{"queue", "transfer", "workload", "device", "payload", "batch", "block"};
  const auto add = [&](const std::vector<Axis>& axes) {
    for (const Axis& axis : axes) names.insert(axis.name);
  };
  for (const auto& [name, entry] : Queues::instance().entries()) {
    if (entry.workers) add(entry.axes);
  }
  for (const auto& [name, entry] : Transfers::instance().entries()) add(entry.axes);
  for (const auto& [name, entry] : Workloads::instance().entries()) add(entry.axes);
  return names;
}

/// Serves until a signal arrives, and returns the number of messages served.
std::uint64_t serve(const QueueConfig& config, const std::string& name, std::uint64_t& served) {
  const auto& entry = Queues::instance().get("--queue", config.point.queue);
  const auto broker = entry.workers->broker(config, name);
  const auto transfer = Transfers::instance().get("--transfer", config.point.transfer).make(transfer_config(config));
  config.metrics->connected = true;
  Worker worker(*broker, *transfer);
  const StopOnSignal signals;
  std::stop_source abandon;
  try {
    worker.run(signals.token(), abandon.get_token());
  } catch (...) {
    served += worker.served();
    throw;
  }
  return served += worker.served();
}

/// Serves across failures of the server. An unreachable or full server may recover, so everything is created again,
/// after increasing pauses. The tasks that this worker held stay on the server, and another worker takes them over when
/// the lease expires. A worker that loses its connection while stopping signs off over a new connection.
std::uint64_t serve_through_failures(const WorkerOptions& options, QueueConfig config) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t served = 0;
  double pause = kFirstPause;
  auto failing_since = Clock::time_point::max();
  bool leaving = false;
  while (true) {
    const auto begin = Clock::now();
    try {
      return serve(config, options.name, served);
    } catch (const ServiceFailure& failure) {
      const bool worked = config.metrics->connected;
      if (worked &&
          std::chrono::duration<double>(Clock::now() - begin).count() > kLongestPause) {  // served for a while
        pause = kFirstPause;
        failing_since = Clock::time_point::max();
      }
      // This also holds after failed attempts to reconnect: even then no message caused the failure.
      config.resumed = (worked || config.resumed) && failure.of_the_service;
      failing_since = std::min(failing_since, Clock::now());
      WorkerMetrics::add(config.metrics->reconnects);
      config.metrics->connected = false;
      const double failing = std::chrono::duration<double>(Clock::now() - failing_since).count();
      if ((interrupted() && std::exchange(leaving, true)) || failing + pause > options.reconnect_seconds) throw;
      spdlog::warn("worker {}: {}; retrying in {:.2g} s", options.name, failure.what(), pause);
      std::this_thread::sleep_for(std::chrono::duration<double>(pause));
      pause = std::min(2 * pause, kLongestPause);
    }
  }
}

std::string default_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = 0;
  return fmt::format("{}-{}", utf8_escaped(host.data()), getpid());
}

/// Command line of a worker that keeps its name across restarts.
std::vector<std::string> with_name(std::vector<std::string> words, const std::string& name) {
  if (std::none_of(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("--name"); })) {
    words.push_back("--name=" + name);
  }
  return words;
}

/// Metrics of a worker, of its queue on the server, and of the GPU.
class WorkerSource final : public MetricsSource {
 public:
  struct Watched {
    const WorkerMetrics& metrics;
    QueueWatch& queue;
    GpuSource gpu;  ///< empty without a GPU
  };
  explicit WorkerSource(Watched watched) : watched_(std::move(watched)) {}
  void collect(const Add& add) override {
    const auto tell = [&](FeedrateMetricKind kind, const char* name, const char* help, double value) {
      add({kind, name, help, value});
    };
    const WorkerMetrics& m = watched_.metrics;
    const auto counter = [&](const char* name, const char* help, const WorkerMetrics::Count& count) {
      tell(kFeedrateCounter, name, help, static_cast<double>(count.load()));
    };
    counter("feedrate_tasks_served_total", "Tasks that the device processed.", m.served);
    counter("feedrate_tasks_failed_total", "Tasks that got a failed result.", m.failed);
    counter("feedrate_tasks_retried_total", "Tasks put back for another attempt.", m.retried);
    counter("feedrate_tasks_buried_total", "Tasks made dead letters by this worker.", m.buried);
    counter("feedrate_suspects_served_total", "Tasks served alone because their worker had died.", m.suspects);
    counter("feedrate_reconnects_total", "Number of times that the server was lost or rejected commands.",
            m.reconnects);
    std::array<unsigned long long, std::tuple_size_v<decltype(m.batch_buckets)>> counts{};
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = m.batch_buckets[i].load();
    const FeedrateMetric batches{kFeedrateHistogram,
                                 "feedrate_batch_seconds",
                                 "Time from taking a batch of tasks to passing on its results.",
                                 static_cast<double>(m.batch_ns.load()) * 1e-9,
                                 counts.size(),
                                 WorkerMetrics::kBatchSeconds.data(),
                                 counts.data()};
    add(batches);
    const auto gauge = [&](const char* name, const char* help, double value) {
      tell(kFeedrateGauge, name, help, value);
    };
    constexpr auto kUp = "feedrate_server_up", kUpHelp = "1 if the queue's server responds, otherwise 0.";
    try {
      watched_.queue.collect(gauge);
      gauge(kUp, kUpHelp, 1);
    } catch (const std::exception&) {  // no exception may pass through the module, whose interface is C
      gauge(kUp, kUpHelp, 0);
    }
    if (!watched_.gpu) return;
    if (const auto sample = watched_.gpu(false); sample) {
      if (sample->utilisation) {
        tell(kFeedrateGauge, "feedrate_gpu_utilisation", "Share of time in which kernels ran.", *sample->utilisation);
      }
      if (sample->power_w) tell(kFeedrateGauge, "feedrate_gpu_power_watts", "Power of the GPU.", *sample->power_w);
    }
  }
  std::string why_unhealthy() const override {
    if (!watched_.metrics.connected) return "not connected to the server";
    const std::uint64_t alive = watched_.metrics.alive_ns.load();  // read before the clock
    const double silent = static_cast<double>(now_ns() - alive) * 1e-9;
    return silent <= watched_.queue.longest_silence() ? ""
                                                      : fmt::format("has not polled for work for {:.1f} s", silent);
  }

 private:
  Watched watched_;
};

int work(WorkerOptions& options, const std::vector<std::string>& arguments) {
  if (options.log == "json") log_as_json();
  if (options.name.empty()) options.name = default_name();
  if (utf8_escaped(options.name) != options.name) throw BadInput("--name", utf8_escaped(options.name), "UTF-8");
  if (options.supervise) return supervise(with_name(arguments, options.name));
  Point asked = point_of(options.point);
  const auto& entry = Queues::instance().get("--queue", asked.queue);
  if (!entry.workers || entry.service.empty()) throw BadInput("--queue", asked.queue, names_of_queues(has_workers));
  options.common.services.insist_on(
      entry.service, "required, because a worker shares the server with its clients and does not start one");
  options.common.device = asked.device;
  asked.window = std::max(asked.window, asked.batch);
  auto session = options.common.session(kStandardExperiment, arguments);
  session->services().connect(entry.service);
  const Resolved resolution = resolve(asked, session->device());
  if (!resolution.impossible.empty()) throw BadInput(resolution.impossible);

  const auto workload = make_workload(resolution.point);
  QueueConfig config{resolution.point, session->device(), *workload, &session->services().get(entry.service), false};
  WorkerMetrics metrics;
  config.metrics = &metrics;
  const auto watch = entry.workers->watch(config);
  std::optional<WorkerSource> source;
  std::optional<MetricsEndpoint> endpoint;
  if (!options.metrics.empty()) {
    source.emplace(WorkerSource::Watched{metrics, *watch, nvml_source(session->device().info().pci_bus)});
    endpoint.emplace(options.metrics, MetricsEndpoint::Label{"worker", options.name}, *source);
  }
  spdlog::info("worker {}: {} from {} on {}", options.name, resolution.point.workload, watch->source(),
               session->device().info().name);
  const std::uint64_t served = serve_through_failures(options, config);
  spdlog::info("worker {}: drained, {} messages served", options.name, served);
  return 0;
}

}  // namespace

void add_worker(Program& program) {
  auto options = std::make_shared<WorkerOptions>();
  CLI::App* command =
      program.app.add_subcommand("worker", "serve a queue for other processes until SIGTERM, then drain and exit");
  add_axes(*command, feeding_axes(), options->point, axes_of_workers());
  options->common.add_device(*command);
  options->common.add_services(*command, services_of_queues(has_workers), true);
  add_option(
      *command, "name", options->name,
      "worker name; a restarted worker of the same name resumes its unfinished tasks at once; default: host and PID");
  add_option(*command, "metrics", options->metrics,
             "[HOST:]PORT: address that serves /metrics (Prometheus) and /healthz; without HOST, all interfaces");
  add_option(*command, "log", options->log, "format of the log on stderr: text or json")
      ->check(CLI::IsMember({"text", "json"}));
  command->add_flag("--supervise", options->supervise, "restart the worker whenever it dies");
  add_seconds(*command, "reconnect", options->reconnect_seconds, 0, 1e6,
              "how long the server may be unreachable or reject commands before the worker exits");
  program.on_choice(*command, [options, &program] { return work(*options, program.arguments); });
}

}  // namespace feedrate

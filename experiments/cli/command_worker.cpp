#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "common/error.hpp"
#include "common/redis/connection.hpp"
#include "common/utf8.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/feeding/feeding.hpp"
#include "experiments/harness/machine/nvml.hpp"
#include "experiments/daemons/log.hpp"
#include "experiments/daemons/metrics.hpp"
#include "experiments/daemons/stop_on_signal.hpp"
#include "experiments/daemons/supervise.hpp"
#include "experiments/daemons/worker_source.hpp"
#include "variants/feeding/queues/redis/ends.hpp"
#include "variants/feeding/worker.hpp"

namespace feedrate {
namespace {

struct WorkerOptions {
  WorkerOptions() { common.redis.delivery.results_seconds = 3600; }
  CommonOptions common;
  Values point{{"queue", "redis_list"}};
  std::string name;
  std::string metrics;
  std::string log = "text";
  bool supervise = false;
  double reconnect_seconds = 60;
};

constexpr double kFirstPause = 0.05, kLongestPause = 2;  // seconds between two attempts to reach the server

/// What a worker can be told: nothing of loads, and of queues only what those have that it can serve.
std::set<std::string> axes_of_workers() {
  std::set<std::string> names{"queue", "transfer", "workload", "device", "payload", "batch", "block"};
  const auto add = [&](const std::vector<Axis>& axes) {
    for (const Axis& axis : axes) names.insert(axis.name);
  };
  for (const auto& [name, entry] : Queues::instance().entries()) {
    if (entry.make_broker) add(entry.axes);
  }
  for (const auto& [name, entry] : Transfers::instance().entries()) add(entry.axes);
  for (const auto& [name, entry] : Workloads::instance().entries()) add(entry.axes);
  return names;
}

void add_delivery(CLI::App& app, DeliverySettings& delivery) {
  const auto add = [&](const char* name, auto& value, auto least, auto most, const char* help) {
    add_option(app, name, value, help)->check(CLI::Range(least, most))->group("DELIVERY");
  };
  add("attempts", delivery.attempts, 1u, 255u, "a task is delivered so often at most; then it is a dead letter");
  const auto seconds = [&](const char* name, double& value, double least, double most, const char* help) {
    add_seconds(app, name, value, least, most, help)->group("DELIVERY");
  };
  seconds("lease", delivery.lease_seconds, 0.1, 86400,
          "a worker that has not renewed its lease for this long is considered dead");
  seconds("retry-after", delivery.retry_seconds, 0, 86400,
          "until a task's second attempt; doubles with each further one");
  add("dead-letters", delivery.dead_letters, std::uint64_t{0}, std::uint64_t{1} << 40,
      "dead letters that are kept; the oldest go first");
  seconds("results-expire", delivery.results_seconds, 0, 1e9,
          "uncollected results are removed after this many seconds; 0: never");
}

/// Serves until a signal comes, and returns how many messages it served.
std::uint64_t serve(const QueueConfig& config, const std::string& name, std::uint64_t& served) {
  const auto& entry = Queues::instance().get("--queue", config.point.queue);
  const auto broker = entry.make_broker(config, name);
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

/// Whether the cause is the connection or the state of the server (full, a replica, changed permissions), and not one
/// task, such as a result that its key or the server rejects.
bool is_of_the_server(const redis::ServerFailure& failure) {
  if (failure.code == "WRONGTYPE") return false;
  if (failure.code != "ERR") return true;
  const std::string_view text = failure.what();
  return text.find("max number of clients") != text.npos || text.find("can't access") != text.npos ||
         text.find("can't run this command") != text.npos;
}

/// A server that went away or is full may come back: everything is made anew, with longer and longer pauses. What this
/// worker held stays on the server and is taken over when its lease runs out. A worker that shall end and loses its
/// connection takes its leave over another one.
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
    } catch (const redis::ServerFailure& failure) {
      const bool worked = config.metrics->connected;
      if (worked && std::chrono::duration<double>(Clock::now() - begin).count() > kLongestPause) {  // for a while
        pause = kFirstPause;
        failing_since = Clock::time_point::max();
      }
      // Also after attempts that did not come to anything: still no message is to blame.
      config.resumed = (worked || config.resumed) && is_of_the_server(failure);
      failing_since = std::min(failing_since, Clock::now());
      WorkerMetrics::add(config.metrics->reconnects);
      config.metrics->connected = false;
      const double failing = std::chrono::duration<double>(Clock::now() - failing_since).count();
      if ((interrupted() && std::exchange(leaving, true)) || failing + pause > options.reconnect_seconds) throw;
      spdlog::warn("worker {}: {}; again in {:.2g} s", options.name, failure.what(), pause);
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

/// The command line of the worker that is supervised: it keeps its name through all its lives.
std::vector<std::string> child_of(std::vector<std::string> words, const std::string& name) {
  std::erase_if(words, [](const std::string& word) { return word.starts_with("--supervise"); });
  if (std::none_of(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("--name"); })) {
    words.push_back("--name=" + name);
  }
  words.emplace_back("--supervise=false");  // a config file may say otherwise
  return words;
}

int work(WorkerOptions& options, const std::vector<std::string>& arguments) {
  if (options.log == "json") log_as_json();
  if (options.name.empty()) options.name = default_name();
  if (utf8_escaped(options.name) != options.name) throw BadInput("--name", utf8_escaped(options.name), "UTF-8");
  if (options.supervise) return supervise(child_of(arguments, options.name));
  Point asked = point_of(options.point);
  const auto& entry = Queues::instance().get("--queue", asked.queue);
  if (!entry.make_broker) throw BadInput("--queue", asked.queue, queues_with_workers());
  if (options.common.redis.url.empty())
    throw BadInput("--redis", "", "redis://… or unix:///…: a worker and its clients share a server, so it starts none");
  options.common.device = asked.device;
  asked.window = std::max(asked.window, asked.batch);
  auto session = options.common.session(kStandardExperiment, arguments);
  session->reach_redis();
  const Resolved resolution = resolve(asked, session->device());
  if (!resolution.impossible.empty()) throw BadInput(resolution.impossible);

  const auto workload = make_workload(resolution.point);
  RedisSettings redis{options.common.redis.url, options.common.redis.prefix};
  redis.delivery = options.common.redis.delivery;
  QueueConfig config{resolution.point, session->device(), *workload, redis, false};
  WorkerMetrics metrics;
  config.metrics = &metrics;
  std::optional<WorkerSource> source;
  std::optional<MetricsEndpoint> endpoint;
  if (!options.metrics.empty()) {
    source.emplace(WorkerSource::Watched{metrics, config.redis, redis_queue::partitions_of(resolution.point),
                                         nvml_source(session->device().info().pci_bus),
                                         config.redis.delivery.lease_seconds});
    endpoint.emplace(options.metrics, MetricsEndpoint::Label{"worker", options.name}, *source);
  }
  const unsigned partitions = redis_queue::partitions_of(resolution.point);
  const std::string from = partitions == 1 ? config.redis.prefix + ":tasks"
                                           : fmt::format("{} partitions of {}", partitions, config.redis.prefix);
  spdlog::info("worker {}: {} from {} on {}", options.name, resolution.point.workload, from,
               session->device().info().name);
  const std::uint64_t served = serve_through_failures(options, config);
  spdlog::info("worker {}: drained, {} messages served", options.name, served);
  return 0;
}

}  // namespace

void add_worker(CLI::App& app, Action& action, const std::vector<std::string>& arguments) {
  auto options = std::make_shared<WorkerOptions>();
  CLI::App* command = app.add_subcommand("worker", "serve a Redis queue until SIGTERM, then drain and end");
  add_axes(*command, feeding_axes(), options->point, axes_of_workers());
  options->common.add_device(*command);
  options->common.add_redis(*command);
  add_option(
      *command, "name", options->name,
      "of this worker; under the same name it takes up at once what it left unfinished; default: host and process");
  add_option(*command, "metrics", options->metrics,
             "[HOST:]PORT: serve /metrics for Prometheus and /healthz there; a port alone listens on every interface");
  add_option(*command, "log", options->log, "how its log on stderr is written: text or json")
      ->check(CLI::IsMember({"text", "json"}));
  command->add_flag("--supervise", options->supervise, "start the worker again whenever it dies");
  add_delivery(*command, options->common.redis.delivery);
  add_seconds(*command, "reconnect", options->reconnect_seconds, 0, 1e6,
              "how long a server may be unreachable or reject commands before the worker ends");
  command->callback(
      [options, &action, &arguments] { action = [options, &arguments] { return work(*options, arguments); }; });
}

}  // namespace feedrate

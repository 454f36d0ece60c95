#include <fmt/format.h>

#include <thread>

#include "common/error.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/feeding/feeding.hpp"
#include "variants/worker.hpp"

namespace feedrate {
namespace {

struct WorkerOptions {
  CommonOptions common;
  Values point{{"queue", "redis_list"}};
  std::string name = "worker-0";
};

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

int work(WorkerOptions& options, const std::vector<std::string>& arguments) {
  Point asked = point_of(options.point);
  const auto& entry = Queues::instance().get("--queue", asked.queue);
  if (!entry.make_broker) throw BadInput("--queue", asked.queue, queues_with_workers());
  if (options.common.redis.url.empty())
    throw BadInput("--redis", "", "redis://… or unix:///…: a worker and its clients share a server, so it starts none");
  options.common.device = asked.device;
  asked.window = std::max(asked.window, asked.batch);
  auto session = options.common.session(kStandardExperiment, arguments);
  reach_redis(*session);
  const Resolved resolution = resolve(asked, session->device());
  if (!resolution.impossible.empty()) throw BadInput(resolution.impossible);

  const auto workload = make_workload(resolution.point);
  const RedisSettings redis{options.common.redis.url, options.common.redis.prefix};
  const QueueConfig config{resolution.point, session->device(), *workload, redis, false};
  const auto broker = entry.make_broker(config, options.name);
  const auto transfer =
      Transfers::instance().get("--transfer", resolution.point.transfer).make(transfer_config(config));
  Worker worker(*broker, *transfer);
  std::stop_source stop, abandon;
  // Signal handlers may not request a stop themselves; this thread hands it on.
  std::jthread watcher([&](const std::stop_token& ended) {
    while (!ended.stop_requested() && !interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    stop.request_stop();
  });
  fmt::print(stderr, "worker {}: {} from {}:tasks on {}\n", options.name, resolution.point.workload,
             config.redis.prefix, session->device().info().name);
  worker.run(stop.get_token(), abandon.get_token());
  fmt::print(stderr, "worker {}: drained, {} messages served\n", options.name, worker.served());
  return 0;
}

}  // namespace

void add_worker(CLI::App& app, Action& action, const std::vector<std::string>& arguments) {
  auto options = std::make_shared<WorkerOptions>();
  CLI::App* command = app.add_subcommand("worker", "serve a Redis queue until SIGTERM, then drain and end");
  add_axes(*command, feeding_axes(), options->point, axes_of_workers());
  options->common.add_device(*command);
  options->common.add_redis(*command);
  add_option(*command, "name", options->name,
             "of this worker; under the same name it takes up what it left unfinished");
  command->callback(
      [options, &action, &arguments] { action = [options, &arguments] { return work(*options, arguments); }; });
}

}  // namespace feedrate

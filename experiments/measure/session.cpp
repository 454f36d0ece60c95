#include "experiments/measure/session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <csignal>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/hash.hpp"
#include "common/redis/own_keys.hpp"
#include "common/nvtx_range.hpp"
#include "experiments/feeding/bounds.hpp"
#include "experiments/machine/environment.hpp"
#include "experiments/floors/floors.hpp"
#include "experiments/machine/machine_monitor.hpp"
#include "experiments/machine/nvml.hpp"
#include "experiments/feeding/open_load.hpp"
#include "experiments/feeding/row_json.hpp"
#include "experiments/feeding/sampling.hpp"

namespace feedrate {
namespace {

volatile std::sig_atomic_t signalled = 0;

/// Of an open load: other ones in each repetition, but the same for every queue.
struct Arrivals {
  Schedule warmup, timed;
};

Arrivals make_arrivals(const Point& point, const RunSettings& settings, unsigned repetition) {
  if (!is_open(point)) return {};
  const std::uint64_t seed = mix64(settings.seed) + repetition;
  const auto messages = static_cast<double>(settings.messages), rate = static_cast<double>(point.rate);
  const double seconds = messages != 0 && rate != 0 ? messages / rate : settings.seconds;
  Arrivals arrivals{make_schedule(point, settings.warmup_seconds, mix64(seed)), make_schedule(point, seconds, seed)};
  if (arrivals.timed.size() == 0) throw Failure(fmt::format("no message is due within {} s", settings.seconds));
  return arrivals;
}

// Above this share of what the driver alone can do, a figure says more about the driver than about the queue.
constexpr double kDriverBound = 0.9;
constexpr std::uint64_t kEnvironmentAgeNs = 5'000'000'000;

}  // namespace

bool interrupted() { return signalled != 0; }

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = [](int) { signalled = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
}

Json to_json(const RunSettings& settings) {
  Json json = {{"seconds", settings.seconds},
               {"warmup_seconds", settings.warmup_seconds},
               {"messages", settings.messages},
               {"seed", settings.seed},
               {"repetitions", settings.repetitions},
               {"pinned_threads", settings.pin_threads},
               {"until_precise", settings.until_precise}};
  if (settings.traced) json["traced"] = true;
  return json;
}

Session::Session(const std::string& device, unsigned gpu, RedisSettings redis, std::string command,
                 RunSettings settings)
    : settings_(std::move(settings)),
      redis_(std::move(redis)),
      command_(std::move(command)),
      device_(open_device(device, gpu)),
      gpu_source_(nvml_source(device_->info().pci_bus)) {}

const RedisSettings& Session::redis() {
  if (redis_.own_prefix.empty()) {
    redis_.own_prefix = redis::prefix_of_run(redis_.prefix);
    redis_.shared = !redis_.url.empty();
  }
  if (private_redis_ && !private_redis_->alive()) stop_redis();  // a cell's reason already says what it met
  if (redis_.url.empty()) {
    private_redis_ = std::make_unique<redis::PrivateServer>();
    redis_.url = private_redis_->url();
  }
  return redis_;
}

void Session::stop_redis() {
  if (!private_redis_) return;
  private_redis_.reset();
  redis_.url.clear();
}

const Json& Session::environment() {
  // Asking the driver and Redis takes tens of milliseconds, and clocks change slowly: once in a few seconds will do.
  if (environment_.empty() || now_ns() - environment_at_ > kEnvironmentAgeNs) {
    try {
      environment_ = environment_of(*device_, redis_.url, private_redis_ != nullptr, command_);
    } catch (const Failure&) {  // the server that failed a cell can't be asked either
      environment_ = environment_of(*device_, "", false, command_);
    }
    environment_at_ = now_ns();
  }
  return environment_;
}

std::vector<Json> Session::measure_floors(bool with_redis) {
  std::vector<Floor> measured = measure_device_floors(*device_);
  if (with_redis) {
    try {
      for (auto& floor : measure_redis_floors(redis())) measured.push_back(std::move(floor));
    } catch (const Failure& failure) {  // a full or dying server: the cells that need it will fail by themselves
      spdlog::warn("the floors of Redis are left out: {}", failure.what());
    }
  }
  std::vector<Json> rows;
  for (const Floor& floor : measured) {
    const Json params{{"floor", floor.name}, {"device", device_->kind()}};
    Json row{{"schema", 1},
             {"kind", "floor"},
             {"id", row_id(params, 0)},
             {"status", "ok"},
             {"reason", ""},
             {"floor",
              {{"name", floor.name}, {"value", floor.value}, {"unit", floor.unit}, {"description", floor.description}}},
             {"device", device_->kind()},
             {"environment", environment()},
             {"time", {{"started", floor.started}, {"duration_seconds", floor.seconds}}}};
    add_floor_row(row);
    rows.push_back(std::move(row));
  }
  return rows;
}

void Session::add_floor_row(const Json& row) {
  floors_[row.at("floor").at("name").get<std::string>()] = row["floor"]["value"];
}

/// Without it there are no stage times, but all the rest.
std::optional<ClockReading> Session::read_clock() {
  try {
    return device_->read_clock();
  } catch (const Failure& failure) {
    spdlog::warn("no stage times: {}", failure.what());
    return std::nullopt;
  }
}

void Session::run_load(const Point& point, const RunSettings& settings, const GpuSource& watched, Outcome& outcome) {
  const auto workload = make_workload(point);
  const auto& entry = Queues::instance().get("--queue", point.queue);
  const Arrivals arrivals = make_arrivals(point, settings, outcome.repetition);
  const Schedule& schedule = arrivals.timed;
  const double due_per_second = is_open(point) ? static_cast<double>(schedule.size()) / schedule.seconds : 0;
  std::optional<StageClock> stages;
  std::optional<ClockReading> before;
  if (!settings.no_stages) before = read_clock();
  if (before) stages.emplace(*device_, point.producers, point.window, finest_sampling(due_per_second, point));
  const QueueConfig config{point,
                           *device_,
                           *workload,
                           entry.uses_redis ? redis() : RedisSettings{},
                           settings.external_worker,
                           floors_.get<Floors>(),
                           stages ? &*stages : nullptr};
  const auto queue = entry.make(config);
  Load load(*queue, point, *workload, *device_,
            {settings.seed, settings.pin_threads, settings.watchdog_seconds, interrupted}, config.stages);
  queue->start();
  outcome.cost = queue->cost();
  outcome.choices = queue->choices();
  try {
    // An open load at a low rate may have nothing due so soon; then there is nothing to warm up with.
    if (settings.warmup_seconds > 0 && (!is_open(point) || arrivals.warmup.size() != 0)) {
      const NvtxRange range("warm-up");
      Pass pass{.seconds = settings.warmup_seconds, .until_steady = true};
      if (is_open(point)) pass.schedule = &arrivals.warmup;
      outcome.warmup = load.run(pass);
    }
    const PassResult& warmup = outcome.warmup;
    const double seen = warmup.seconds == 0 ? 0 : static_cast<double>(warmup.received) / warmup.seconds;
    const double expected = is_open(point) ? due_per_second : seen;
    outcome.sample_every = timing_sampling(expected, point);
    if (stages) {
      // What is staged is timed, too: the larger of two powers of two is a multiple of the other.
      stages->sample(std::max(outcome.sample_every, stages_sampling(expected, settings.seconds, point)));
      outcome.stages_sampled_every = stages->every();
    }
    const NvtxRange range("timed");
    Pass pass{.seconds = settings.seconds, .messages = settings.messages, .sample_every = outcome.sample_every};
    if (is_open(point)) {
      pass.schedule = &schedule;
      pass.seconds = schedule.seconds;
      pass.messages = 0;
    }
    if (outcome.trace != nullptr) outcome.trace->begin();
    MachineMonitor monitor(watched);
    outcome.result = load.run(pass);
    outcome.machine = monitor.stop();
    queue->stop(true);
    queue->check();
    if (stages) {
      const auto after = read_clock();
      if (after) outcome.clock = ClockMap(*before, *after);
      if (!after) outcome.result.stages.clear();
    }
    if (outcome.trace != nullptr) {
      const PassResult& timed = outcome.result;
      outcome.gpu_use =
          outcome.trace->end(timed.stages, outcome.clock, timed.began_ns, timed.seconds,
                             {{"params", params_of(point)}, {"clock_within_ns", outcome.clock.within_ns()}});
    }
    load.collect_leftovers();
    outcome.counts = load.counts();
    outcome.first_wrong = load.first_wrong();
  } catch (...) {
    outcome.counts = load.counts();
    queue->stop(false);
    throw;
  }
}

double Session::driver_limit(const Point& point, double rate) {
  const std::string key = fmt::format("{}/{}/{}/{}/{}/{}", point.workload, point.payload, point.batch, point.window,
                                      point.producers, point.flops_per_byte);
  const auto [known, first] = driver_limits_.try_emplace(key, 0);
  double& limit = known->second;
  Point null = point;
  null.queue = "null";
  null.arrivals = "closed";
  null.rate = 0;
  null = resolve(null, *device_).point;
  RunSettings brief = settings_;
  brief.seconds = 0.1;
  brief.warmup_seconds = 0.02;
  brief.messages = 0;
  brief.no_stages = true;
  // A busy machine makes a short run slow, never fast: before a row is called driver-bound, the limit is tried again.
  for (int tries = first ? 3 : 2; tries > 0 && (limit == 0 || rate > kDriverBound * limit); --tries) {
    Outcome outcome;
    run_load(null, brief, {}, outcome);
    limit = std::max(limit, static_cast<double>(outcome.result.received) / outcome.result.seconds);
  }
  return limit;
}

void Session::compare_with_driver(const Point& point, double rate, Json& row) {
  try {
    const double limit = driver_limit(point, rate);
    row["bound"]["driver"] = {{"messages_per_second", limit}, {"ratio", rate / limit}};
    if (rate <= kDriverBound * limit) return;
    const std::string also = row["reason"];
    row["reason"] = fmt::format("driver-bound: {:.0f} % of what the driver alone reaches{}{}", 100 * rate / limit,
                                also.empty() ? "" : "; ", also);
  } catch (const std::exception& error) {  // the yardstick broke, not the cell
    row["reason"] = fmt::format("the driver's own limit could not be measured: {}", error.what());
  }
  row["status"] = "invalid";
}

void Session::measure(const Point& point, CellTrace* trace, Json& row) {
  const auto& entry = Queues::instance().get("--queue", point.queue);
  Outcome outcome;
  outcome.repetition = row["repetition"];
  outcome.trace = trace;
  std::string failure;
  try {
    run_load(point, settings_, gpu_source_, outcome);
  } catch (const Failure& error) {
    failure = error.what();
  }
  const auto& [repetition, counts, first_wrong, cost, choices, sample_every, stages_sampled_every, warmup, result,
               machine, clock, traced, gpu_use] = outcome;
  row["counts"] = to_json(counts);
  if (!choices.empty()) row["chosen"] = choices;
  row["cost"] = {{"host_threads", cost.host_threads + 2 * point.producers},
                 {"spinning_threads", cost.host_threads + 2 * point.producers},
                 {"sms", cost.sms},
                 {"delivery", entry.delivery},
                 {"order", entry.order},
                 {"durable", entry.durable},
                 {"batch", point.batch},
                 {"window", point.window}};
  if (!failure.empty() || !counts.clean()) {
    row["status"] = "failed";
    row["reason"] = !failure.empty() ? failure
                                     : fmt::format("wrong answers: {} lost, {} duplicated, {} corrupted of {} sent{}{}",
                                                   counts.lost, counts.duplicated, counts.corrupted, counts.sent,
                                                   first_wrong.empty() ? "" : "; ", first_wrong);
    return;
  }
  if (result.received == 0) {
    row["status"] = "invalid";
    row["reason"] = interrupted() ? "interrupted" : "no result came back within the timed phase";
    return;
  }
  const double rate = static_cast<double>(result.received) / result.seconds;
  row["throughput"] = {
      {"messages_per_second", rate}, {"bytes_per_second", rate * result.mean_payload}, {"seconds", result.seconds}};
  row["latency_ns"] = to_json(result.latency, sample_every);
  if (!result.stages.empty()) {
    const StageDurations durations = stage_durations(result.stages, clock);
    row["stages_ns"] = to_json(durations.stages);
    row["stages_sampled_every"] = stages_sampled_every;
    row["clock"] = {{"within_ns", clock.within_ns()},
                    {"events_within_ns", clock.events_within_ns()},
                    {"drift_ppm", clock.drift_ppm()},
                    {"drift_within_ppm", clock.drift_within_ppm()},
                    {"out_of_order_share",
                     static_cast<double>(durations.out_of_order) / static_cast<double>(kStages * result.stages.size())},
                    {"most_out_of_order_ns", durations.most_out_of_order_ns}};
  }
  if (!gpu_use.is_null()) row["gpu_use"] = gpu_use;
  row["machine"] = to_json(machine);
  row["warmup"] = {{"seconds", warmup.seconds}, {"steady", warmup.steady}};
  row["bound"] = bounds_of(point, floors_, choices, rate, result.latency.quantile(0.5));
  if (interrupted()) {
    row["status"] = "invalid";
    row["reason"] = "interrupted";
  } else if (is_open(point)) {
    describe_open_load(point, result, sample_every, floors_.value("host_pause_p99_ns", 0.0), row);
    if (entry.works && row["status"] == "unsustainable") compare_with_driver(point, row["load"]["due_per_second"], row);
  } else if (entry.works && settings_.compare_with_driver) {
    compare_with_driver(point, rate, row);
  }
  const auto disturbed = disturbances(machine);
  if (row["reason"] != "interrupted" && !settings_.keep_disturbed && !disturbed.empty()) {
    row["status"] = "invalid";
    row["reason"] = fmt::format("disturbed: {}", fmt::join(disturbed, "; "));
  }
}

Json Session::empty_row(const Point& point, unsigned repetition) const {
  Json params = params_of(point);
  std::string id = row_id(params, repetition);
  return {{"schema", 1},
          {"kind", "cell"},
          {"id", std::move(id)},
          {"repetition", repetition},
          {"status", "ok"},
          {"reason", ""},
          {"params", std::move(params)},
          {"run", to_json(settings_)},
          {"floors", floors_},
          {"environment", environment_},
          {"counts", to_json(Counts{})},
          {"time", {{"started", utc_now()}, {"duration_seconds", 0}}}};
}

Json Session::failed_row(const Point& point, unsigned repetition, const std::string& reason) const {
  Json row = empty_row(point, repetition);
  row["status"] = "failed";
  row["reason"] = reason;
  return row;
}

Json Session::run_cell(const Resolution& cell, unsigned repetition, CellTrace* trace) {
  environment();
  Json row = empty_row(cell.point, repetition);
  const NvtxRange cell_range(
      fmt::format("cell {} {} {}", cell.point.queue, cell.point.transfer, row["id"].get<std::string>()));
  const NvtxRange repetition_range(fmt::format("repetition {}", repetition));
  const auto begin = now_ns();
  if (!cell.impossible.empty()) {
    row["status"] = "skipped";
    row["reason"] = cell.impossible;
    return row;
  }
  try {
    measure(cell.point, trace, row);
  } catch (const std::exception& error) {  // setting up the cell: memory, connections
    row["status"] = "failed";
    row["reason"] = error.what();
  }
  row["environment"] = environment();  // again: by now the server is known, and the clocks are those of work
  row["time"]["duration_seconds"] = static_cast<double>(now_ns() - begin) / 1e9;
  return row;
}

}  // namespace feedrate

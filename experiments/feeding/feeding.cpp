#include "experiments/feeding/feeding.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/hash.hpp"
#include "common/nvtx_range.hpp"
#include "experiments/feeding/bounds.hpp"
#include "experiments/feeding/sampling.hpp"
#include "experiments/harness/limits/device_limits.hpp"
#include "experiments/harness/load/open_load.hpp"
#include "experiments/harness/machine/machine_monitor.hpp"
#include "experiments/harness/timeline/cell_timeline.hpp"
#include "variants/feeding/transfer.hpp"

namespace feedrate {
namespace {

/// Schedules of an open load. They differ between repetitions but are the same for every queue.
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

/// Seed of the payloads. It differs between repetitions, so that data left over from one cannot pass as a result of the
/// next.
std::uint64_t payload_seed(std::uint64_t seed, unsigned repetition) { return mix64(seed) + repetition; }

const QueueEntry& queue_of(const Point& point) { return Queues::instance().get("--queue", point.queue); }

/// Runs untimed load until the rate is steady, for at most kMaxWarmups times the requested seconds, or for twice as
/// long if the rate certainly changes even then. An open load repeats its arrivals.
PassResult warm_up(Load& load, const Point& point, const RunSettings& settings, const Schedule& arrivals) {
  PassResult warmup;
  // An open load at a low rate may have no message due during the warm-up.
  if (settings.warmup_seconds <= 0 || (is_open(point) && arrivals.size() == 0)) return warmup;
  const NvtxRange range("warm-up");
  const unsigned times = settings.extend_warmup ? kMaxWarmups : 1;
  // A closed load runs all times in one pass.
  const unsigned passes = is_open(point) ? times : 1, most = settings.extend_warmup ? 2 * passes : passes;
  const Pass pass{.seconds = settings.warmup_seconds * times / passes,
                  .schedule = is_open(point) ? &arrivals : nullptr,
                  .until_steady = true};
  for (unsigned i = 0; i < most && !warmup.steady && (i < passes || warmup.changing) && !interrupted(); ++i) {
    const double before = warmup.seconds;
    warmup = load.run(pass);
    warmup.seconds += before;
  }
  return warmup;
}

std::vector<Span> spans_of(std::span<const StageSample> samples, const ClockMap& clock) {
  std::vector<Span> spans;
  for (const StageSample& sample : samples) {
    for_each_stage(sample, clock, [&](Stage stage, std::uint64_t begin, std::uint64_t end, std::uint64_t) {
      if (begin == end) return;
      const char* const name = kStageNames[static_cast<std::size_t>(stage)];
      spans.push_back({fmt::format("producer {}", producer_of(sample.id)), name, begin, end, sample.id});
    });
  }
  return spans;
}

Json to_json(const Counts& counts) {
  return {{"sent", counts.sent},           {"received", counts.received},
          {"lost", counts.lost},           {"duplicated", counts.duplicated},
          {"corrupted", counts.corrupted}, {"reordered", counts.reordered}};
}

Json to_json(const std::array<Histogram, kStages>& stages) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kStages; ++i) {
    const Histogram& stage = stages[i];
    if (stage.samples() == 0) continue;
    json[kStageNames[i]] = {{"mean", stage.mean()},
                            {"p50", stage.quantile(0.5)},
                            {"p99", stage.quantile(0.99)},
                            {"samples", stage.samples()}};
  }
  return json;
}

void add_stages(std::span<const StageSample> samples, const ClockMap& clock, std::uint64_t sampled_every,
                Json& details) {
  const StageDurations durations = stage_durations(samples, clock);
  const auto times = static_cast<double>(kStages * samples.size());
  details["stages_ns"] = to_json(durations.stages);
  details["stages_sampled_every"] = sampled_every;
  details["clock"] = {{"within_ns", clock.within_ns()},
                      {"events_within_ns", clock.events_within_ns()},
                      {"drift_ppm", clock.drift_ppm()},
                      {"drift_within_ppm", clock.drift_within_ppm()},
                      {"out_of_order_share", static_cast<double>(durations.out_of_order) / times},
                      {"most_out_of_order_ns", durations.max_out_of_order_ns}};
}

/// Measures the use of cores by a service while this object exists.
class ServiceUse {
 public:
  /// `service` may be null. The destructor sets `cores`.
  ServiceUse(Service* service, std::optional<double>& cores)
      : service_(service), cores_(cores), before_(service != nullptr ? service->cpu_seconds() : std::nullopt) {}
  ~ServiceUse() {
    if (!before_) return;
    const double seconds = static_cast<double>(now_ns() - begin_ns_) / 1e9;
    if (const auto after = service_->cpu_seconds()) cores_ = (*after - *before_) / seconds;
  }
  ServiceUse(const ServiceUse&) = delete;
  ServiceUse& operator=(const ServiceUse&) = delete;

 private:
  Service* service_;
  std::optional<double>& cores_;
  std::optional<double> before_;
  std::uint64_t begin_ns_ = now_ns();
};

/// Services that these points need.
std::set<std::string> services_of(std::span<const Resolution> points) {
  std::set<std::string> services;
  for (const Resolution& each : points) {
    if (!each.impossible.empty()) continue;
    if (const std::string& service = queue_of(point_of(each.values)).service; !service.empty())
      services.insert(service);
  }
  return services;
}

}  // namespace

Resolution Feeding::resolve(const Values& values) {
  Resolved made = feedrate::resolve(point_of(values), session_.device());
  return {values_of(made.point), std::move(made.impossible), std::move(made.unused)};
}

void Feeding::connect(std::span<const Resolution> points) {
  for (const Resolution& each : points) {
    if (!session_.settings().external_worker) break;
    const Point point = point_of(each.values);
    if (!queue_of(point).workers) {
      throw BadInput("--external-worker", point.queue,
                     "queues that other processes can reach: " + names_of_queues(has_workers));
    }
    const std::string& service = queue_of(point).service;
    if (!service.empty() && !session_.services().is_external(service)) {
      throw BadInput(option_of(service), "", "a URL: an external worker cannot find a private server");
    }
  }
  for (const std::string& service : services_of(points)) session_.services().connect(service);
}

void Feeding::add_limits(LimitList& limits, std::span<const Resolution> points) {
  std::set<std::string> queues;
  for (const Resolution& each : points) {
    if (each.impossible.empty()) queues.insert(point_of(each.values).queue);
  }
  for (const std::string& name : queues) {
    const auto& queue = Queues::instance().get("--queue", name);
    if (queue.limits) queue.limits(limits);
  }
  for (const std::string& service : services_of(points)) {
    try {
      session_.services().get(service).add_limits(limits);
    } catch (const Failure& failure) {  // a full or dying server: the cells that need it report the failure
      spdlog::warn("the limits of {} are not measured: {}", service, failure.what());
    }
  }
}

std::optional<ClockReading> Feeding::read_clock() {
  try {
    return session_.device().read_clock();
  } catch (const Failure& failure) {
    spdlog::warn("stage times are not available: {}", failure.what());
    return std::nullopt;
  }
}

void Feeding::run_load(const Point& point, const RunSettings& settings, const GpuSource& watched,
                       const Repetition& repetition, Outcome& outcome) {
  Device& device = session_.device();
  const Workload& workload = workload_of(point);
  const std::unique_ptr<const Payloads> stamped = stamped_of(point);
  const Payloads& payloads = stamped ? *stamped : workload;
  const QueueEntry& entry = queue_of(point);
  const Arrivals arrivals = make_arrivals(point, settings, repetition.number);
  const Schedule& schedule = arrivals.timed;
  const std::uint64_t seed = payload_seed(settings.seed, repetition.number);
  const double due_per_second = is_open(point) ? static_cast<double>(schedule.size()) / schedule.seconds : 0;
  std::optional<StageClock> stages;
  std::optional<ClockReading> before;
  if (!settings.no_stages) before = read_clock();
  if (before) stages.emplace(device, point.producers, point.window, finest_sampling(due_per_second, point));
  const QueueConfig config{point,
                           device,
                           workload,
                           entry.service.empty() ? nullptr : &session_.services().get(entry.service),
                           settings.external_worker,
                           session_.limits(),
                           stages ? &*stages : nullptr,
                           [&](std::uint64_t first_id, const Messages& results) {
                             payloads.answer(seed, first_id, point.payload, results);
                           }};
  const auto queue = entry.make(config);
  Load load(*queue, point, payloads, device,
            {seed, settings.pin_threads, settings.watchdog_seconds, interrupted, settings.longest_pass_seconds},
            config.stages);
  queue->start();
  outcome.cost = queue->cost();
  outcome.durable = queue->durable();
  outcome.choices = queue->choices();
  try {
    outcome.warmup = warm_up(load, point, settings, arrivals.warmup);
    const PassResult& warmup = outcome.warmup;
    const double seen = warmup.seconds == 0 ? 0 : static_cast<double>(warmup.received) / warmup.seconds;
    const double expected = is_open(point) ? due_per_second : seen;
    outcome.sample_every = timing_sampling(expected, point);
    if (stages) {
      // A message with stage times is also timed: the larger of two powers of two is a multiple of the other.
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
    if (repetition.timeline != nullptr) repetition.timeline->begin();
    MachineMonitor monitor(watched);
    {
      const ServiceUse use(entry.service.empty() ? nullptr : &session_.services().get(entry.service),
                           outcome.service_cores);
      const Captured captured(session_);
      outcome.result = load.run(pass);
    }
    outcome.machine = monitor.stop();
    queue->stop(true);
    queue->check();
    if (stages) {
      const auto after = read_clock();
      if (after) outcome.clock = ClockMap(*before, *after);
      if (!after) outcome.result.stages.clear();
    }
    if (repetition.timeline != nullptr) {
      const PassResult& timed = outcome.result;
      outcome.gpu_use = repetition.timeline->end(spans_of(timed.stages, outcome.clock), timed.began_ns, timed.seconds,
                                                 {{"params", session_.info().axes().params(values_of(point))},
                                                  {"clock_within_ns", outcome.clock.within_ns()}});
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

const Workload& Feeding::workload_of(const Point& point) {
  Values made_of{{"workload", point.workload}, {"payload", static_cast<std::uint64_t>(point.payload)}};
  for (const Axis& axis : Workloads::instance().get("--workload", point.workload).axes) {
    if (const auto own = point.own.find(axis.name); own != point.own.end()) made_of.insert(*own);
  }
  if (!workload_ || made_of != workload_made_of_) {
    workload_ = make_workload(point);
    workload_->prepare(point.payload);
    workload_made_of_ = std::move(made_of);
    stamps_.reset();
  }
  return *workload_;
}

std::unique_ptr<const Payloads> Feeding::stamped_of(const Point& point) {
  if (point.touch != "stamp") return nullptr;
  const Workload& workload = workload_of(point);
  if (!stamps_) stamps_ = Stamped::pool_of(workload, point.payload);
  return std::make_unique<Stamped>(workload, *stamps_, point.producers);
}

GeneratorLimit Feeding::generator_limit(const Point& point) {
  const Point generator_point = generator_point_of(point, session_.device());
  const Workload& workload = workload_of(generator_point);
  const std::unique_ptr<const Payloads> stamped = stamped_of(generator_point);
  return measure_generator(generator_point, workload, stamped ? *stamped : workload, session_.device(),
                           session_.settings());
}

void Feeding::compare_with_generator(const Point& point, double rate, Measurement& measured) {
  try {
    const GeneratorLimit limit = generator_limit(point);
    const double ratio = rate / limit.greatest;
    measured.details["driver"] = {{"messages_per_second", limit.median},
                                  {"least", limit.least},
                                  {"greatest", limit.greatest},
                                  {"runs", kGeneratorRuns},
                                  {"ratio", ratio}};
    if (!generator_bound(rate, limit)) return;
    measured.judge(Status::invalid, Cause::generator_bound,
                   fmt::format("generator-bound: {:.0f} % of the rate of the load generator alone", 100 * ratio));
  } catch (const std::exception& error) {  // the generator-only point failed, not the cell
    measured.judge(Status::invalid, Cause::generator_unknown,
                   fmt::format("the limit of the load generator could not be measured: {}", error.what()));
  }
}

Measurement Feeding::measure(const Resolution& cell, const Repetition& repetition) {
  const Point point = point_of(cell.values);
  const QueueEntry& entry = queue_of(point);
  Measurement measured;
  Outcome outcome;
  std::string failure, given_up;
  const bool open = is_open(point);  // only open loads are judged by the pauses, and reading them takes time
  const double pause_before = open ? host_pause_p99_ns() : 0;
  try {
    run_load(point, session_.settings(), session_.gpu(), repetition, outcome);
  } catch (const PassGivenUp& error) {
    given_up = error.what();
  } catch (const Failure& error) {
    failure = error.what();
  }
  const double pause_after = open ? host_pause_p99_ns() : 0;
  const auto& [counts, first_wrong, cost, durable, service_cores, choices, sample_every, stages_sampled_every, warmup,
               result, machine, clock, gpu_use] = outcome;
  measured.details["counts"] = to_json(counts);
  if (open) measured.details["host_pause_p99_ns"] = {{"before", pause_before}, {"after", pause_after}};
  const std::unique_ptr<const Payloads> stamped = stamped_of(point);
  measured.details["checked"] = (stamped ? *stamped : workload_of(point)).how_checked(point.payload);
  measured.chosen = choices;
  measured.host_threads = cost.host_threads + 2 * point.producers;
  measured.sms = cost.sms;
  measured.cost = {{"delivery", text_of(entry.guarantee.delivery)},
                   {"order", entry.guarantee.order},
                   {"durable", durable},
                   {"batch", point.batch},
                   {"window", point.window}};
  if (service_cores) measured.cost["service_cores"] = *service_cores;
  if (!failure.empty()) {
    measured.judge(Status::failed, Cause::error, failure);
    return measured;
  }
  if (!given_up.empty()) {
    measured.judge(Status::invalid, Cause::no_results, given_up);
    return measured;
  }
  if (std::string wrong = wrong_results(counts, entry.guarantee.delivery); !wrong.empty()) {
    if (!first_wrong.empty()) wrong += "; " + first_wrong;
    measured.judge(Status::failed, Cause::wrong_results, wrong);
    return measured;
  }
  if (result.received == 0) {
    measured.judge(Status::invalid, Cause::no_results, "no result came back within the timed phase");
    return measured;
  }
  if (!result.ramped) {
    measured.judge(
        Status::invalid, Cause::no_results,
        fmt::format("{} results arrived within {:.3g} s: fewer than a window", result.received, result.seconds));
    return measured;
  }
  const double rate = static_cast<double>(result.received) / result.seconds;
  measured.numbers = {{"messages_per_second", rate}, {"bytes_per_second", rate * result.mean_payload}};
  measured.details["throughput_seconds"] = result.seconds;
  measured.histograms["latency_ns"] = {result.latency, sample_every};
  if (!result.stages.empty()) add_stages(result.stages, clock, stages_sampled_every, measured.details);
  measured.gpu_use = gpu_use;
  measured.machine = machine;
  if (service_cores && session_.services().is_external(entry.service)) measured.machine->service_cores = *service_cores;
  measured.details["warmup"] = {{"seconds", warmup.seconds},
                                {"steady", warmup.steady},
                                {"changing", warmup.changing},
                                {"ramp_seconds", result.ramp_seconds}};
  const bool warmed = session_.settings().warmup_seconds > 0;
  if (session_.settings().extend_warmup && (warmup.changing || (warmed && warmup.seconds == 0))) {
    measured.flags.insert(Flag::unsteady);
  }
  measured.bounds_of_figures = bounds_of(point, session_.limits(), choices, describe_cpu().cache, is_open(point));
  if (is_open(point)) {
    const double pause = std::max(pause_before, pause_after);
    describe_open_load(result, {point.batch, point.producers, sample_every, pause}, measured);
    if (entry.works && measured.status == Status::unsustainable) {
      compare_with_generator(point, measured.details["load"]["due_per_second"], measured);
    }
  } else if (entry.works && session_.settings().compare_with_generator && !interrupted()) {
    compare_with_generator(point, rate, measured);
  }
  return measured;
}

}  // namespace feedrate

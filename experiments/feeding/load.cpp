#include "experiments/feeding/load.hpp"

#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "experiments/feeding/steadiness.hpp"

namespace feedrate {
namespace {

/// Delay before an open load starts, so that all threads have seen the start signal.
constexpr std::uint64_t kStartNs = 2'000'000;

}  // namespace

Load::Load(Queue& queue, const Point& point, const Payloads& payloads, Device& device, const LoadSettings& settings,
           StageClock* stages)
    : queue_(queue),
      work_{point, payloads, settings.seed, Queues::instance().get("--queue", point.queue).works, stages},
      device_(device),
      settings_(settings) {
  for (unsigned i = 0; i < point.producers; ++i) {
    flows_.push_back(std::make_unique<Flow>(i, point, queue));
    if (stages != nullptr)
      flows_.back()->stages.resize(max_stage_samples(point.producers));  // allocates the pages before timing starts
  }
}

Load::~Load() = default;

void Load::guarded(const std::function<void()>& body) {
  try {
    device_.use_in_this_thread();
    body();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    abort_ = true;
    stop_sending_ = true;
  }
}

std::uint64_t Load::received() const {
  std::uint64_t total = 0;
  for (const auto& flow : flows_) total += flow->received.load(std::memory_order_acquire);
  return total;
}

void Load::send(Flow& flow, const Pass& pass) {
  if (pass.schedule != nullptr) {
    send_open(flow, work_, pass, stop_sending_);
  } else {
    send_closed(flow, work_, pass, stop_sending_);
  }
  flow.all_sent.store(true, std::memory_order_release);
  // A broker's client may still hold unsent bytes; send them while waiting for results.
  Backoff backoff;
  while (!abort_.load(std::memory_order_relaxed) && flow.received.load(std::memory_order_acquire) < flow.sent.load()) {
    flow.producer->progress();
    backoff.wait();
  }
}

/// Supervises a pass from start to end and fills in its duration and number of results.
class Load::Supervision {
 public:
  Supervision(Load& load, const Pass& pass, std::uint64_t start, PassResult& result)
      : load_(load),
        pass_(pass),
        start_(start),
        counted_from_(start),
        received_before_(load.received()),
        result_(result) {}

  void watch() {
    const auto patience = static_cast<std::uint64_t>(load_.settings_.watchdog_seconds * 1e9);
    std::uint64_t last_received = received_before_, last_sent = 0, last_progress = start_;
    while (!load_.abort_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::uint64_t received = load_.received(), now = std::max(now_ns(), start_);
      std::uint64_t sent = 0;
      bool all_sent = true;
      for (const auto& flow : load_.flows_) {
        all_sent &= flow->all_sent.load(std::memory_order_acquire);
        sent += flow->sent.load(std::memory_order_acquire);
      }
      const bool done = all_sent && received >= sent;
      if (measuring_) measure(now, received, done);
      if (!measuring_ && now > stop_at_) load_.stop_sending_ = true;
      if (done && !measuring_) break;
      if (received != last_received || received >= sent) {
        if (received != last_received || sent != last_sent || pass_.messages == 0) last_progress = now;
        last_received = received;
        last_sent = sent;
        if (now - last_progress > patience) {
          throw Failure(
              fmt::format("watchdog: the queue accepted no message for {} s", load_.settings_.watchdog_seconds));
        }
      } else if (now - last_progress > patience) {
        throw Failure(fmt::format("watchdog: no result for {} s, {} of {} messages missing",
                                  load_.settings_.watchdog_seconds, sent - received, sent));
      }
      const double longest = load_.settings_.longest_pass_seconds;
      if (longest != 0 && static_cast<double>(now - start_) > longest * 1e9) {
        throw PassGivenUp(
            fmt::format("given up after {:.3g} s: {} of {} messages are missing", longest, sent - received, sent));
      }
      load_.queue_.check();
    }
    if (pass_.messages != 0) {
      std::uint64_t finished = start_;
      for (const auto& flow : load_.flows_) finished = std::max(finished, flow->finished_at);
      result_.seconds = static_cast<double>(finished - start_) / 1e9;
    }
    result_.backlog = backlog_of(backlog_, pass_.seconds);
  }

 private:
  /// Whether the pipe is still filling. A pass of a closed load begins with an empty pipe; counting starts when a full
  /// window has come back.
  bool ramping(std::uint64_t now, std::uint64_t received) {
    if (ramped_) return false;
    ramped_ =
        pass_.schedule != nullptr || pass_.messages != 0 || std::ranges::all_of(load_.flows_, [&](const auto& flow) {
          return flow->received.load(std::memory_order_acquire) >= flow->first + load_.work_.point.window;
        });
    if (!ramped_) return true;
    if (pass_.schedule == nullptr && pass_.messages == 0) {
      counted_from_ = now;
      received_before_ = received;
      result_.ramp_seconds = static_cast<double>(now - start_) / 1e9;
    }
    return false;
  }

  void measure(std::uint64_t now, std::uint64_t received, bool done) {
    const bool interrupted = load_.settings_.interrupted && load_.settings_.interrupted();
    const double longest = ramping(now, received) ? kLongestRamp * pass_.seconds : pass_.seconds;
    const bool late = now >= counted_from_ + static_cast<std::uint64_t>(longest * 1e9);
    const std::uint64_t due = pass_.schedule == nullptr ? 0 : pass_.schedule->due_until(now - start_);
    if (pass_.schedule != nullptr && !late) {
      backlog_.push_back(static_cast<double>(due) - static_cast<double>(received - received_before_));
    }
    result_.steady = pass_.until_steady && ramped_ && steadiness_.add(now, received, due);
    const bool over = pass_.messages != 0 ? done : late;
    if (!interrupted && !result_.steady && !over) return;
    measuring_ = false;
    result_.changing = pass_.until_steady && steadiness_.changing();
    result_.ramped = ramped_;
    result_.received = received - received_before_;
    result_.seconds = static_cast<double>(now - counted_from_) / 1e9;
    // Nothing was due after the end, so the time since then does not belong to the load.
    if (pass_.schedule != nullptr && late) result_.seconds = pass_.seconds;
    // Due messages are still sent for a while, because their lateness is part of the measurement.
    const bool finish = pass_.schedule != nullptr && !interrupted && !result_.steady;
    stop_at_ = now + (finish ? static_cast<std::uint64_t>(kGraceSeconds * 1e9) : 0);
    if (!finish) load_.stop_sending_ = true;
  }

  Load& load_;
  const Pass& pass_;
  std::uint64_t start_, counted_from_, received_before_, stop_at_ = 0;
  PassResult& result_;
  bool measuring_ = true, ramped_ = false;
  Steadiness steadiness_;
  std::vector<double> backlog_;
};

PassResult Load::run(const Pass& pass) {
  PassResult result;
  stop_sending_ = false;
  {
    // Wait until all threads exist: creating hundreds of them takes milliseconds. Threads spin while they wait, so that
    // the scheduler gives each new thread its own core. Threads that sleep here and are woken together sometimes end up
    // on the same core and stay there for tens of milliseconds.
    std::atomic<unsigned> ready{0};
    std::atomic<bool> go{false};
    std::vector<std::jthread> threads;
    const auto add = [&](unsigned core, std::function<void()> prepare, std::function<void()> body) {
      threads.emplace_back([this, core, &ready, &go, prepare = std::move(prepare), body = std::move(body)] {
        if (settings_.pin_threads) pin_to_core(core);
        guarded(prepare);
        ready.fetch_add(1, std::memory_order_release);
        Backoff backoff;
        while (!go.load(std::memory_order_acquire)) backoff.wait();
        guarded(body);
      });
    };
    guarded([&] {  // if a thread cannot be created, the others end
      for (auto& flow : flows_) {
        add(
            2 * flow->index, [&flow, &pass] { flow->begin(pass.schedule); },
            [this, &flow, &pass] { send(*flow, pass); });
        add(
            2 * flow->index + 1, [] {}, [this, &flow, &pass] { collect(*flow, work_, pass, abort_); });
      }
    });
    Backoff backoff;
    while (ready.load(std::memory_order_acquire) < threads.size()) backoff.wait();
    const std::uint64_t start = now_ns() + (pass.schedule != nullptr ? kStartNs : 0);
    result.began_ns = start;
    for (auto& flow : flows_) flow->start = start;
    Supervision supervision(*this, pass, start, result);  // before any thread starts working
    go.store(true, std::memory_order_release);
    guarded([&] { supervision.watch(); });
  }
  if (failure_) std::rethrow_exception(failure_);
  std::uint64_t sending = 0, blocked = 0, polls = 0, polling = 0;
  for (auto& flow : flows_) {
    result.latency.merge(flow->latency);
    result.service.merge(flow->service);
    result.without_own_lag.merge(flow->without_own_lag);
    result.send_lag.merge(flow->send_lag);
    result.own_lag.merge(flow->own_lag);
    result.stages.insert(result.stages.end(), flow->stages.begin(), flow->stages.end());
    for (const auto& [priority, latency] : flow->by_priority) result.by_priority[priority].merge(latency);
    result.unsent += flow->unsent;
    sending += flow->sending_ns, blocked += flow->blocked_ns;
    polls += flow->polls, polling += flow->polling_ns;
  }
  result.mean_payload = static_cast<double>(work_.point.payload);
  if (pass.schedule != nullptr) {
    result.due = pass.schedule->size();
    result.mean_payload = pass.schedule->mean_payload(work_.point.payload);
  }
  result.blocked_share = sending == 0 ? 0 : static_cast<double>(blocked) / static_cast<double>(sending);
  result.granularity_ns = polls == 0 ? 0 : static_cast<double>(polling) / static_cast<double>(polls);
  return result;
}

void Load::collect_leftovers() {
  constexpr std::uint64_t kPatienceNs = 1'000'000;  // results in flight from a broker arrive within this time
  for (auto& flow : flows_) {
    const std::uint64_t deadline = now_ns() + kPatienceNs;
    do {
      const ConstMessages results = flow->collector->poll(work_.point.batch);
      flow->counts.duplicated += results.count;
      flow->collector->release(results.count);
    } while (now_ns() < deadline);
  }
}

std::string Load::first_wrong() const {
  for (const auto& flow : flows_) {
    if (!flow->first_wrong.empty()) return flow->first_wrong;
  }
  return "";
}

Counts Load::counts() const {
  Counts total;
  for (const auto& flow : flows_) {
    total.sent += flow->sent.load();
    total.received += flow->counts.received;
    total.duplicated += flow->counts.duplicated;
    total.corrupted += flow->counts.corrupted;
    total.reordered += flow->tracker.reordered();
  }
  total.lost = total.sent - total.received;
  return total;
}

}  // namespace feedrate

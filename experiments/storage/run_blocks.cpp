#include "experiments/storage/run_blocks.hpp"

#include <atomic>
#include <exception>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>

#include "common/clock.hpp"
#include "experiments/harness/load/open_load.hpp"
#include "experiments/storage/block_load.hpp"

namespace feedrate::storage {
namespace {

/// One thread of a job.
class Runner {
 public:
  Runner(const Job& job, unsigned thread, std::function<bool()> stop)
      : job_(job), thread_(thread), stop_(std::move(stop)), pattern_(job.pattern(thread)) {}

  /// Calls `ready` before the first request is submitted.
  template <class Ready>
  Seen run(const Ready& ready) {
    job_.session.device().use_in_this_thread();
    Seen seen;
    if (engine_of(job_.options).accessed_by_device(point_of(job_.options, job_.own))) {
      ready();
      run_on_device(seen);
      return seen;
    }
    if (job_.options.lifetime == "pass") {
      ready();
      run_passes(seen);
      return seen;
    }
    const auto load = open(once());
    Schedule schedule;
    const bool open_load = is_open(job_.shape);
    if (open_load) {
      LoadShape mine = job_.shape;
      mine.rate /= job_.options.threads;
      schedule = make_schedule(mine, settings().seconds, settings().seed + job_.repetition + 1000 * thread_);
    }
    ready();
    seen.load = offer_to(*load, settings().seconds, open_load ? &schedule : nullptr);
    seen.requested = load->requested();
    seen.path = load->engine().path();
    return seen;
  }

 private:
  const RunSettings& settings() const { return job_.session.settings(); }
  EngineConfig config() const {
    const Options& options = job_.options;
    return {.files = job_.files.files(),
            .device = job_.session.device(),
            .operation = operation_of(options),
            .direct = options.is_direct(),
            .block = options.block,
            .depth = options.depth,
            .own = job_.own};
  }
  bool once() const { return job_.options.residency == "cold" && job_.options.reads(); }
  std::unique_ptr<BlockLoad> open(bool once) const {
    const Options& options = job_.options;
    const BlockShape blocks{operation_of(options), options.block, options.depth, options.shift, job_.version, once};
    return std::make_unique<BlockLoad>(engine_of(options).make(config()), job_.session.device(), job_.files, pattern_,
                                       blocks);
  }
  void run_on_device(Seen& seen) const {
    std::vector<std::uint32_t> order(pattern_.size());
    for (std::size_t n = 0; n < order.size(); ++n) order[n] = static_cast<std::uint32_t>(pattern_.at(n));
    std::vector<std::uint64_t> keys(job_.files.files().size());
    for (unsigned f = 0; f < keys.size(); ++f) keys[f] = job_.files.key(f, job_.version);
    const DeviceAccessResult result = engine_of(job_.options)
                                          .access(config(), {.order = order,
                                                             .blocks_per_file = job_.options.blocks_per_file(),
                                                             .shift = job_.options.shift,
                                                             .keys = keys,
                                                             .once = once(),
                                                             .seconds = settings().seconds,
                                                             .stop = stop_});
    seen.load.received = result.ended;
    seen.load.seconds = result.seconds;
    for (const auto& [ns, count] : result.latency) {
      for (std::uint64_t i = 0; i < count; ++i) seen.load.latency.record(ns);
    }
    seen.requested = result.loads * job_.options.block;
    seen.cache_hits = result.hits;
    seen.cache_loads = result.loads;
    seen.path = result.path;
  }
  LoadResult offer_to(BlockLoad& load, double seconds, const Schedule* schedule) const {
    return offer(load, {.seconds = seconds,
                        .window = load.window(),
                        .schedule = schedule,
                        .watchdog_seconds = settings().watchdog_seconds,
                        .interrupted = [&] { return stop_() || load.exhausted(); }});
  }
  void run_passes(Seen& seen) {
    const std::uint64_t begin = now_ns();
    const auto budget = static_cast<std::uint64_t>(settings().seconds * 1e9);
    auto load = open(true);
    while (seen.passes.samples() == 0 || (now_ns() - begin < budget && !stop_())) {
      const std::uint64_t opened = now_ns();
      if (!load->reopen()) {
        load.reset();
        load = open(true);
      }
      const std::uint64_t requested = load->requested();
      const LoadResult result = offer_to(*load, 1e9, nullptr);
      const std::uint64_t ns = now_ns() - opened;
      seen.requested += load->requested() - requested;
      seen.load.latency.merge(result.latency);
      seen.path = load->engine().path();
      seen.passes.record(ns);
      seen.pass_seconds += static_cast<double>(ns) / 1e9;
    }
  }

  const Job& job_;
  unsigned thread_;
  std::function<bool()> stop_;
  Pattern pattern_;
};

}  // namespace

std::vector<Seen> run_blocks(const Job& job) {
  const unsigned count = job.options.threads;
  std::vector<Seen> seen(count);
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  std::mutex mutex;
  std::latch all_ready(count);
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < count; ++t) {
      threads.emplace_back([&, t] {
        bool arrived = false;
        const auto ready = [&] {
          arrived = true;
          all_ready.arrive_and_wait();
        };
        try {
          seen[t] = Runner(job, t, [&failed] { return failed.load() || interrupted(); }).run(ready);
        } catch (...) {
          {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
          }
          failed = true;
          if (!arrived) all_ready.count_down();
        }
      });
    }
  }
  if (failure) std::rethrow_exception(failure);
  return seen;
}

}  // namespace feedrate::storage

#include "experiments/storage/run_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <latch>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "common/clock.hpp"
#include "experiments/harness/load/open_load.hpp"
#include "experiments/storage/block_load.hpp"

namespace feedrate::storage {
namespace {

/// What a thread reports while it runs, for the case that it hangs.
class Progress {
 public:
  /// The thread continues.
  void beat() { beats_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t beats() const { return beats_.load(std::memory_order_relaxed); }
  /// Why the thread is about to fail.
  void note(std::string text) {
    const std::lock_guard lock(mutex_);
    note_ = std::move(text);
  }
  std::string note() const {
    const std::lock_guard lock(mutex_);
    return note_;
  }
  std::atomic<std::uint64_t> submitting{0};  ///< 1 + number of the request that is being submitted; 0: none
  bool ended = false;                        ///< guarded by the crew's mutex

 private:
  std::atomic<std::uint64_t> beats_{0};
  mutable std::mutex mutex_;
  std::string note_;
};

/// A load that reports its progress.
class Reporting final : public Endpoint {
 public:
  Reporting(BlockLoad& load, Progress& progress) : load_(load), progress_(progress) {}
  bool submit(std::size_t slot, std::uint64_t number) override {
    progress_.submitting.store(number + 1, std::memory_order_relaxed);
    const bool submitted = load_.submit(slot, number);
    progress_.submitting.store(0, std::memory_order_relaxed);
    return submitted;
  }
  std::size_t poll(std::span<std::size_t> ended) override {
    progress_.beat();
    return load_.poll(ended);
  }

 private:
  BlockLoad& load_;
  Progress& progress_;
};

/// One thread of a job.
class Runner {
 public:
  Runner(const Job& job, unsigned thread, Progress& progress, std::function<bool()> stop)
      : job_(job), thread_(thread), progress_(progress), stop_(std::move(stop)), pattern_(job.pattern(thread)) {}

  /// Calls `ready` before the first request is submitted.
  template <class Ready>
  Seen run(const Ready& ready) {
    job_.device->use_in_this_thread();
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
      schedule =
          make_schedule(mine, settings().seconds, settings().seed + job_.repetition + std::uint64_t{1000} * thread_);
    }
    ready();
    seen.load = offer_to(*load, settings().seconds, open_load ? &schedule : nullptr);
    seen.requested = load->requested();
    seen.path = load->engine().path();
    return seen;
  }

 private:
  const RunSettings& settings() const { return job_.settings; }
  PointConfig config() const {
    const Options& options = job_.options;
    return {{.files = job_.files->files(),
             .device = *job_.device,
             .operation = operation_of(options),
             .direct = options.is_direct(),
             .block = options.block,
             .depth = options.depth},
            job_.own};
  }
  bool once() const { return job_.options.residency == "cold" && job_.options.reads(); }
  std::unique_ptr<BlockLoad> open(bool once) const {
    const Options& options = job_.options;
    const BlockShape blocks{operation_of(options), options.block, options.depth, options.shift, job_.version, once};
    return std::make_unique<BlockLoad>(engine_of(options).make(config()), *job_.device, *job_.files, pattern_, blocks);
  }
  void run_on_device(Seen& seen) const {
    std::vector<std::uint32_t> order(pattern_.size());
    for (std::size_t n = 0; n < order.size(); ++n) order[n] = static_cast<std::uint32_t>(pattern_.at(n));
    std::vector<std::uint64_t> keys(job_.files->files().size());
    for (unsigned f = 0; f < keys.size(); ++f) keys[f] = job_.files->key(f, job_.version);
    const DeviceAccessResult result =
        engine_of(job_.options)
            .access(config(), {.order = order,
                               .blocks_per_file = job_.options.blocks_per_file(),
                               .shift = job_.options.shift,
                               .keys = keys,
                               .once = once(),
                               .seconds = settings().seconds,
                               .stop =
                                   [this] {
                                     progress_.beat();
                                     return stop_();
                                   },
                               .failing = [this](const std::string& why) { progress_.note(why); }});
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
    Reporting reporting(load, progress_);
    try {
      return offer(reporting, {.seconds = seconds,
                               .window = load.window(),
                               .schedule = schedule,
                               .watchdog_seconds = settings().watchdog_seconds,
                               .interrupted = [&] { return stop_() || load.exhausted(); }});
    } catch (const NoProgress& failure) {
      const std::string oldest = load.oldest();
      const std::string why = oldest.empty() ? failure.what() : fmt::format("{}: {}", oldest, failure.what());
      progress_.note(why);
      throw Failure(why);
    } catch (const Failure& failure) {
      progress_.note(failure.what());
      throw;
    }
  }
  void run_passes(Seen& seen) {
    const std::uint64_t begin = now_ns();
    const auto budget = static_cast<std::uint64_t>(settings().seconds * 1e9);
    auto load = open(true);
    while (seen.passes.samples() == 0 || (now_ns() - begin < budget && !stop_())) {
      const std::uint64_t started = now_ns(), requested = load->requested();
      const LoadResult result = offer_to(*load, 1e9, nullptr);
      seen.requested += load->requested() - requested;
      seen.load.latency.merge(result.latency);
      seen.path = load->engine().path();
      // Closes the files, which ends their registration, and opens them for the next pass.
      if (!load->reopen()) {
        load.reset();
        load = open(true);
      }
      const std::uint64_t ns = now_ns() - started;
      seen.passes.record(ns);
      seen.pass_seconds += static_cast<double>(ns) / 1e9;
    }
  }

  const Job& job_;
  unsigned thread_;
  Progress& progress_;
  std::function<bool()> stop_;
  Pattern pattern_;
};

/// What the threads of a job share. They may outlive run_blocks().
class Crew {
 public:
  explicit Crew(std::shared_ptr<const Job> job)
      : job_(std::move(job)),
        seen_(job_->options.threads),
        progress_(job_->options.threads),
        all_ready_(job_->options.threads) {}

  void run(unsigned thread) {
    bool arrived = false;
    const auto ready = [&] {
      arrived = true;
      all_ready_.arrive_and_wait();
    };
    try {
      seen_[thread] = Runner(*job_, thread, progress_[thread], [this] { return failed_ || interrupted(); }).run(ready);
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
      failed_ = true;
      if (!arrived) all_ready_.count_down();
    }
    {
      const std::lock_guard lock(mutex_);
      progress_[thread].ended = true;
    }
    one_ended_.notify_one();
  }
  /// The last `count` threads do not exist: the others end as soon as they can.
  void miss(unsigned count, const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::make_exception_ptr(Failure(why));
      for (std::size_t t = progress_.size() - count; t < progress_.size(); ++t) progress_[t].ended = true;
    }
    failed_ = true;
    all_ready_.count_down(count);
  }
  /// Waits until all threads have ended. Throws Hung.
  void await() {
    constexpr std::chrono::milliseconds kInterval{20};
    const auto patience = static_cast<std::uint64_t>(kPatience * job_->settings.watchdog_seconds * 1e9);
    std::vector<std::uint64_t> beats(progress_.size()), since(progress_.size(), now_ns());
    std::unique_lock lock(mutex_);
    const auto all_ended = [this] { return std::ranges::all_of(progress_, &Progress::ended); };
    while (!one_ended_.wait_for(lock, kInterval, all_ended)) {
      const std::uint64_t now = now_ns();
      for (std::size_t t = 0; t < progress_.size(); ++t) {
        const std::uint64_t found = progress_[t].beats();
        if (progress_[t].ended || found != beats[t]) since[t] = now;
        beats[t] = found;
        if (now - since[t] <= patience) continue;
        failed_ = true;
        throw Hung(fmt::format("{}; the thread could not be stopped within {:.1f} s", place(),
                               static_cast<double>(patience) / 1e9));
      }
    }
  }
  std::vector<Seen> results() {
    if (failure_) std::rethrow_exception(failure_);
    return std::move(seen_);
  }

 private:
  static constexpr double kPatience = 3;  // multiple of the time limit for requests

  /// The request that a thread waits for, with file and offset, as far as it is known.
  std::string place() const {
    for (const Progress& each : progress_) {
      if (std::string note = each.note(); !note.empty() && !each.ended) return note;
    }
    for (unsigned t = 0; t < progress_.size(); ++t) {
      const std::uint64_t number = progress_[t].submitting.load(std::memory_order_relaxed);
      if (number == 0 || progress_[t].ended) continue;
      const std::uint64_t block = job_->pattern(t).at(number - 1), per_file = job_->options.blocks_per_file();
      return fmt::format("{} of {} bytes at offset {} of {} does not return", job_->options.operation,
                         job_->options.block, block % per_file * job_->options.block + job_->options.shift,
                         job_->files->files()[block / per_file].path);
    }
    return fmt::format("{}: no request is known to be in flight", job_->files->files().front().path);
  }

  std::shared_ptr<const Job> job_;
  std::vector<Seen> seen_;
  std::vector<Progress> progress_;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable one_ended_;
  std::latch all_ready_;
};

}  // namespace

std::vector<Seen> run_blocks(std::shared_ptr<const Job> job) {
  const unsigned count = job->options.threads;
  const auto crew = std::make_shared<Crew>(std::move(job));
  std::vector<std::thread> threads;
  try {
    for (unsigned t = 0; t < count; ++t) threads.emplace_back([crew, t] { crew->run(t); });
  } catch (const std::system_error& failure) {
    crew->miss(count - static_cast<unsigned>(threads.size()),
               fmt::format("cannot start thread {} of {}: {}", threads.size() + 1, count, failure.what()));
  }
  try {
    crew->await();
  } catch (...) {
    for (std::thread& thread : threads) thread.detach();
    throw;
  }
  for (std::thread& thread : threads) thread.join();
  return crew->results();
}

}  // namespace feedrate::storage

#include "experiments/harness/limits/device_limits.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "common/clock.hpp"
#include "common/limits/device_limit.hpp"
#include "common/limits/limit_list.hpp"
#include "common/threads/threads.hpp"

namespace feedrate {
namespace {

/// Two threads pass one word back and forth: the minimum cost of any answer from another thread.
double thread_round_trip_ns() {
  constexpr unsigned kTrips = 4'000, kEnd = ~0U;
  alignas(128) std::atomic<unsigned> ping{0};
  alignas(128) std::atomic<unsigned> pong{0};
  std::jthread answerer([&] {
    Backoff backoff;
    for (unsigned i = 1, asked = 0; asked != kEnd; ++i) {
      while ((asked = ping.load(std::memory_order_acquire)) < i) backoff.wait();
      backoff.reset();
      pong.store(i, std::memory_order_release);
    }
  });
  unsigned trip = 0;
  Backoff backoff;
  const auto one = [&] {
    ping.store(++trip, std::memory_order_release);
    while (pong.load(std::memory_order_acquire) < trip) backoff.wait();
    backoff.reset();
  };
  one();
  const double median = median_ns(kTrips, one, kLongestReadingSeconds);
  ping.store(kEnd, std::memory_order_release);
  return median;
}

/// All cores copy, each within its own memory, which exceeds the caches.
double host_copy_bytes_per_second() {
  constexpr std::size_t kBytes = 64 << 20;
  const unsigned threads = std::min(available_cores(), 16u);
  std::vector<std::future<double>> rates;
  for (unsigned t = 0; t < threads; ++t) {
    rates.push_back(std::async(std::launch::async, [] {
      std::vector<std::byte> from(kBytes), to(kBytes);
      return kBytes * per_second(kReadingSeconds, [&] { std::memcpy(to.data(), from.data(), kBytes); });
    }));
  }
  double total = 0;
  for (auto& rate : rates) total += rate.get();
  return total;
}

}  // namespace

double host_pause_p99_ns() {
  constexpr double kPauseSeconds = 0.02;
  constexpr std::uint64_t kWorthNoting = 200;  // ns; reading the clock takes a tenth of that
  constexpr double kTail = 0.01;
  const unsigned threads = std::max(3u, available_cores()) - 2;
  std::vector<std::future<std::vector<std::uint64_t>>> spinners;
  for (unsigned t = 0; t < threads; ++t) {
    spinners.push_back(std::async(std::launch::async, [] {
      std::vector<std::uint64_t> pauses;
      const auto start = now_ns(), end = start + static_cast<std::uint64_t>(kPauseSeconds * 1e9);
      for (auto last = start, now = start; last < end; last = now) {
        now = now_ns();
        if (now - last > kWorthNoting) pauses.push_back(now - last);
      }
      return pauses;
    }));
  }
  std::vector<std::uint64_t> pauses;
  for (auto& spinner : spinners) {
    const auto seen = spinner.get();
    pauses.insert(pauses.end(), seen.begin(), seen.end());
  }
  // An event that occurs at least `t` before the end of a pause waits for at least `t`. Sum the longest pauses first,
  // until such moments are a hundredth of the total time.
  std::ranges::sort(pauses, std::greater());
  const double tail = kTail * threads * kPauseSeconds * 1e9;
  double sum = 0;
  for (std::size_t n = 0; n < pauses.size(); ++n) {
    const auto next = static_cast<double>(n + 1 < pauses.size() ? pauses[n + 1] : kWorthNoting);
    sum += static_cast<double>(pauses[n]);
    const double wait = (sum - tail) / static_cast<double>(n + 1);
    if (wait >= next) return wait;
  }
  return static_cast<double>(kWorthNoting);
}

const DeviceLimitRegistration registered{
    {"thread_round_trip_ns",
     {kNs, "one word to another thread and back, median", on_host, [](LimitProbe&) { return thread_round_trip_ns(); }}},
    {"host_pause_p99_ns",
     {kNs, "scheduling delay of spinning threads on all cores but two, 99th percentile", on_host,
      [](LimitProbe&) { return host_pause_p99_ns(); }}},
    {"host_copy_bytes_per_second", {kBytesPerSecond, "memcpy on all cores, out of cache", on_host, [](LimitProbe&) {
                                      return host_copy_bytes_per_second();
                                    }}}};

}  // namespace feedrate

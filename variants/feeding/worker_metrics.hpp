#pragma once
#include <array>
#include <atomic>
#include <cstdint>

namespace feedrate {

/// The counters of a worker. Its thread writes them; any thread may read them.
struct WorkerMetrics {
  using Count = std::atomic<std::uint64_t>;
  /// Upper bounds, in seconds, of the time that a batch spends in the worker; the last bucket takes longer times.
  static constexpr std::array<double, 12> kBatchSeconds{1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1, 3};

  Count served = 0;    ///< tasks that a device processed
  Count failed = 0;    ///< processed or rejected tasks that got a failed result
  Count retried = 0;   ///< tasks returned for another attempt
  Count buried = 0;    ///< tasks that became dead letters
  Count suspects = 0;  ///< tasks served alone because their worker had died
  Count batch_ns = 0;
  std::array<Count, kBatchSeconds.size() + 1> batch_buckets{};
  Count reconnects = 0;  ///< reconnections after the server was unavailable or rejected a command
  Count alive_ns = 0;    ///< time of the last poll for work, by the steady clock
  std::atomic<bool> connected = false;

  static void add(Count& count, std::uint64_t n = 1) { count.fetch_add(n, std::memory_order_relaxed); }
  void add_batch(std::uint64_t ns) {
    std::size_t bucket = 0;
    while (bucket < kBatchSeconds.size() && static_cast<double>(ns) * 1e-9 > kBatchSeconds[bucket]) ++bucket;
    add(batch_buckets[bucket]);
    add(batch_ns, ns);
  }
};

}  // namespace feedrate

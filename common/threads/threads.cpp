#include "common/threads/threads.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "common/threads/cpu_quota.hpp"

namespace feedrate {
namespace {

// Number of polls without `pause`, which takes 140 cycles on some CPUs. They cover the round trip of a single message.
constexpr unsigned kPolls = 200;
// At least about 20 µs: longer than any GPU round trip for which a thread should spin.
constexpr unsigned kSpins = 2000;
// On one or two cores, a thread that keeps yielding still takes a fair share of CPU time from working threads, so it
// sleeps after this many polls.
constexpr unsigned kVeryFewCores = 2, kYields = 100;
constexpr std::chrono::microseconds kSleep(50);

cpu_set_t allowed_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  return cores;
}

}  // namespace

unsigned available_cores() {
  static const unsigned cores = [] {
    const cpu_set_t allowed = allowed_cores();
    const auto quota = static_cast<unsigned>(std::min(read_cpu_quota().cores.value_or(CPU_SETSIZE), 1.0 * CPU_SETSIZE));
    return std::max(1u, std::min(static_cast<unsigned>(CPU_COUNT(&allowed)), quota));
  }();
  return cores;
}

void Backoff::wait() {
  static const unsigned cores = available_cores();
  static const unsigned spins = cores <= kFewCores ? 0 : kSpins;
  static const unsigned awake = cores <= kVeryFewCores ? kYields : std::numeric_limits<unsigned>::max();
  if (idle_ < awake) ++idle_;
  if (idle_ < spins) {
#if defined(__x86_64__)
    if (idle_ > kPolls) __builtin_ia32_pause();
#endif
  } else if (idle_ < awake) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(kSleep);
  }
}

void in_parallel(std::size_t n, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < n; i = next++) body(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < std::min<std::size_t>(n, available_cores()); ++t) others.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

void pin_to_core(unsigned index) {
  // The mask is read once: later calls would see only the single core set by an earlier call.
  static const cpu_set_t allowed = allowed_cores();
  index %= available_cores();
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || index-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    return;
  }
}

}  // namespace feedrate

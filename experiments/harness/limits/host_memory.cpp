#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <latch>
#include <vector>

#include "common/limits/device_limit.hpp"
#include "common/limits/limit_list.hpp"
#include "common/threads/threads.hpp"

/// Ceilings of host memory: the rates at which threads write and read it, in their nearest cache and beyond all caches.
/// They bound the creation of messages and the comparison of results. The limits of one thread are for points with few
/// producers, and the limits of all cores are for points with many.
namespace feedrate {
namespace {

// Bytes of memory per thread: within its nearest cache, and beyond all caches.
constexpr std::size_t kInCache = 32 << 10;
#ifdef __SANITIZE_THREAD__  // the reading would measure the sanitizer's shadow memory, and take seconds per pass
constexpr std::size_t kOutOfCache = 1 << 20;
#else
constexpr std::size_t kOutOfCache = 64 << 20;
#endif

constexpr unsigned kMaxThreads = 16;

using Memory = std::vector<std::uint64_t>;

void write(Memory& memory) {
  std::memset(memory.data(), 7, memory.size() * sizeof(std::uint64_t));
  asm volatile("" : : "r"(memory.data()) : "memory");  // keeps the stores
}

void read(Memory& memory) {
  std::uint64_t sums[8] = {};  // enough independent sums that no addition waits for the previous one
  for (std::size_t i = 0; i + 8 <= memory.size(); i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += memory[i + lane];
  }
  asm volatile("" : : "r"(sums) : "memory");
}

/// Total bytes per second of `writers` threads that write and `readers` threads that read; each has its own memory.
double rate_of(unsigned writers, unsigned readers, std::size_t bytes) {
  std::latch ready(writers + readers);  // allocating memory takes longer than a reading
  const auto work = [&](const std::function<void(Memory&)>& pass) {
    Memory memory(bytes / sizeof(std::uint64_t), 1);
    ready.arrive_and_wait();
    const std::size_t passes = kOutOfCache / bytes;  // between two readings of the clock
    return static_cast<double>(bytes * passes) * per_second(kReadingSeconds, [&] {
             for (std::size_t i = 0; i < passes; ++i) pass(memory);
           });
  };
  std::vector<std::future<double>> rates;
  for (unsigned t = 0; t < writers + readers; ++t) {
    rates.push_back(std::async(std::launch::async, [&, t] { return t < writers ? work(write) : work(read); }));
  }
  double total = 0;
  for (auto& rate : rates) total += rate.get();
  return total;
}

unsigned all() { return std::min(available_cores(), kMaxThreads); }
unsigned half() { return std::max(1u, all() / 2); }
unsigned one() { return 1; }
unsigned none() { return 0; }

/// `writers` and `readers` return the number of such threads on this host.
template <class Writers, class Readers>
DeviceLimit memory(const char* method, Writers writers, Readers readers, std::size_t bytes) {
  return {kBytesPerSecond, method, on_host, [=](LimitProbe&) { return rate_of(writers(), readers(), bytes); }};
}

const DeviceLimitRegistration registered{
    {"host_cache_write_bytes_per_second", memory("one thread writes 32 KiB repeatedly", one, none, kInCache)},
    {"host_cache_read_bytes_per_second", memory("one thread reads 32 KiB repeatedly", none, one, kInCache)},
    {"host_cache_both_bytes_per_second",
     memory("one thread writes and another reads, 32 KiB each, total", one, one, kInCache)},
    {"host_thread_write_bytes_per_second", memory("one thread writes 64 MiB, out of cache", one, none, kOutOfCache)},
    {"host_thread_read_bytes_per_second", memory("one thread reads 64 MiB, out of cache", none, one, kOutOfCache)},
    {"host_memory_write_bytes_per_second",
     memory("all cores, up to 16, write 64 MiB each, total", all, none, kOutOfCache)},
    {"host_memory_read_bytes_per_second",
     memory("all cores, up to 16, read 64 MiB each, total", none, all, kOutOfCache)},
    {"host_memory_both_bytes_per_second",
     memory("all cores, up to 16: half write and half read, 64 MiB each, total", half, half, kOutOfCache)}};

}  // namespace
}  // namespace feedrate

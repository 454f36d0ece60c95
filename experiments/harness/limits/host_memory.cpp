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

/// The ceilings of host memory: how fast threads write and read it, in their caches and beyond all. Making messages and
/// comparing results is bound by them. One thread, for points with few producers; all cores, for points with many.
namespace feedrate {
namespace {

// Bytes of one thread's memory: in its nearest cache, and beyond all.
constexpr std::size_t kInCache = 32 << 10;
#ifdef __SANITIZE_THREAD__  // its own memory is what would be measured, and takes seconds a pass
constexpr std::size_t kOutOfCache = 1 << 20;
#else
constexpr std::size_t kOutOfCache = 64 << 20;
#endif

constexpr unsigned kMostThreads = 16;

using Memory = std::vector<std::uint64_t>;

void write(Memory& memory) {
  std::memset(memory.data(), 7, memory.size() * sizeof(std::uint64_t));
  asm volatile("" : : "r"(memory.data()) : "memory");  // so that the stores stay
}

void read(Memory& memory) {
  std::uint64_t sums[8] = {};  // enough of them that no addition waits for the one before
  for (std::size_t i = 0; i + 8 <= memory.size(); i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += memory[i + lane];
  }
  asm volatile("" : : "r"(sums) : "memory");
}

/// Bytes a second of `writers` threads that write and `readers` that read, together; each has memory of its own.
double rate_of(unsigned writers, unsigned readers, std::size_t bytes) {
  std::latch ready(writers + readers);  // making memory takes longer than a reading
  const auto work = [&](const std::function<void(Memory&)>& pass) {
    Memory memory(bytes / sizeof(std::uint64_t), 1);
    ready.arrive_and_wait();
    const std::size_t passes = kOutOfCache / bytes;  // between two looks at the clock
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

unsigned all() { return std::min(available_cores(), kMostThreads); }
unsigned half() { return std::max(1u, all() / 2); }
unsigned one() { return 1; }
unsigned none() { return 0; }

/// `writers` and `readers` say how many threads of each there are on this host.
template <class Writers, class Readers>
DeviceLimit memory(const char* method, Writers writers, Readers readers, std::size_t bytes) {
  return {kBytesPerSecond, method, on_host, [=](LimitProbe&) { return rate_of(writers(), readers(), bytes); }};
}

const DeviceLimitRegistration registered{
    {"host_cache_write_bytes_per_second", memory("one thread writes 32 KiB again and again", one, none, kInCache)},
    {"host_cache_read_bytes_per_second", memory("one thread reads 32 KiB again and again", none, one, kInCache)},
    {"host_cache_both_bytes_per_second",
     memory("one thread writes, another reads, 32 KiB each, together", one, one, kInCache)},
    {"host_thread_write_bytes_per_second", memory("one thread writes 64 MiB, out of cache", one, none, kOutOfCache)},
    {"host_thread_read_bytes_per_second", memory("one thread reads 64 MiB, out of cache", none, one, kOutOfCache)},
    {"host_memory_write_bytes_per_second",
     memory("all cores, up to 16, write 64 MiB each, together", all, none, kOutOfCache)},
    {"host_memory_read_bytes_per_second",
     memory("all cores, up to 16, read 64 MiB each, together", none, all, kOutOfCache)},
    {"host_memory_both_bytes_per_second",
     memory("half of them write, half read, 64 MiB each, together", half, half, kOutOfCache)}};

}  // namespace
}  // namespace feedrate

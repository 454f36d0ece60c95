#include "experiments/floors.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "common/clock.hpp"
#include "common/redis/connection.hpp"
#include "common/threads.hpp"

namespace feedrate {
namespace {

constexpr double kSeconds = 0.1;

/// Two threads hand one word to and fro: what any answer from another thread costs.
double thread_round_trip_ns() {
  constexpr unsigned kTrips = 20'000;
  alignas(128) std::atomic<unsigned> ping{0};
  alignas(128) std::atomic<unsigned> pong{0};
  std::jthread answerer([&] {
    Backoff backoff;
    for (unsigned i = 1; i <= kTrips + kTrips / 10 + 1; ++i) {
      while (ping.load(std::memory_order_acquire) < i) backoff.wait();
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
  return median_ns(kTrips, one);
}

/// All cores copy, each within memory of its own that no cache holds.
double host_copy_bytes_per_second() {
  constexpr std::size_t kBytes = 64 << 20;
  const unsigned threads = std::min(available_cores(), 16u);
  std::vector<double> rates(threads);
  {
    std::vector<std::jthread> all;
    for (unsigned t = 0; t < threads; ++t) {
      all.emplace_back([&rates, t] {
        std::vector<std::byte> from(kBytes), to(kBytes);
        rates[t] = kBytes * per_second(kSeconds, [&] { std::memcpy(to.data(), from.data(), kBytes); });
      });
    }
  }
  double total = 0;
  for (const double rate : rates) total += rate;
  return total;
}

constexpr std::size_t kElement = 64;
constexpr std::size_t kElements = 512;  // in one command or one pipelined run

/// Elements a second of one connection that keeps two runs of `append` under way; every run has `replies` replies.
double pipelined_per_second(redis::Connection& connection, std::size_t replies, const std::function<void()>& append) {
  append();
  return static_cast<double>(kElements) * per_second(kSeconds, [&] {
           append();
           for (std::size_t i = 0; i < replies; ++i) connection.read();
         });
}

void drain(redis::Connection& connection) {
  while (connection.unanswered() != 0) connection.read();
}

}  // namespace

void FloorList::add(std::string name, std::string unit, std::string description,
                    const std::function<double()>& measure) {
  Floor floor{std::move(name), 0, std::move(unit), std::move(description), utc_now(), 0};
  const auto start = now_ns();
  floor.value = measure();
  floor.seconds = static_cast<double>(now_ns() - start) / 1e9;
  floors_.push_back(std::move(floor));
}

double median_ns(unsigned n, const std::function<void()>& body) {
  for (unsigned i = 0; i < n / 10; ++i) body();
  std::vector<std::uint64_t> times(n);
  for (auto& time : times) {
    const auto start = now_ns();
    body();
    time = now_ns() - start;
  }
  const auto middle = times.begin() + n / 2;
  std::nth_element(times.begin(), middle, times.end());
  return static_cast<double>(*middle);
}

double per_second(double seconds, const std::function<void()>& body) {
  body();
  std::uint64_t runs = 0;
  const auto start = now_ns(), end = start + static_cast<std::uint64_t>(seconds * 1e9);
  auto now = start;
  for (; now < end; now = now_ns(), ++runs) body();
  return static_cast<double>(runs) / (static_cast<double>(now - start) / 1e9);
}

std::vector<Floor> measure_device_floors(Device& device) {
  FloorList floors;
  floors.add("thread_round_trip_ns", "ns", "one word to another thread and back, median", thread_round_trip_ns);
  floors.add("host_copy_bytes_per_second", "bytes/s", "memcpy on all cores, out of cache", host_copy_bytes_per_second);
  if (device.kind() == "cuda") add_cuda_floors(floors, device);
  return floors.take();
}

std::vector<Floor> measure_redis_floors(const RedisSettings& settings) {
  redis::Connection connection(settings.url);
  const std::string list = settings.prefix + ":floor:list", stream = settings.prefix + ":floor:stream";
  const std::string count = std::to_string(kElements);
  const std::string element(kElement, 'x');
  FloorList floors;
  const auto push = [&](const std::string& value, std::size_t n) {
    connection.begin_command(2 + n);
    connection.add_word("LPUSH");
    connection.add_word(list);
    for (std::size_t i = 0; i < n; ++i) connection.add_word(value);
    connection.flush();
  };
  const auto pop = [&](const std::string& n) {
    connection.append({"RPOP", list, n});
    connection.flush();
  };
  connection.command({"DEL", list, stream});
  floors.add("redis_round_trip_ns", "ns", "PING and its answer, one connection, median",
             [&] { return median_ns(2000, [&] { connection.command({"PING"}); }); });
  floors.add("redis_list_push_per_second", "1/s", "LPUSH of 64-byte elements, 512 a command, pipelined",
             [&] { return pipelined_per_second(connection, 1, [&] { push(element, kElements); }); });
  drain(connection);
  floors.add("redis_list_pop_per_second", "1/s", "RPOP of 64-byte elements, 512 a command, pipelined, refills not counted",
             [&] {
               double seconds = 0, popped = 0;
               while (seconds < kSeconds) {
                 connection.command({"DEL", list});
                 for (unsigned i = 0; i < 16; ++i) push(element, kElements);
                 drain(connection);
                 const auto start = now_ns();
                 for (unsigned i = 0; i < 16; ++i) pop(count);
                 drain(connection);
                 seconds += static_cast<double>(now_ns() - start) / 1e9;
                 popped += 16 * kElements;
               }
               return popped / seconds;
             });
  floors.add("redis_bytes_per_second", "bytes/s", "64 KiB elements through a list: each pushed and popped", [&] {
    connection.command({"DEL", list});
    const std::string large(64 << 10, 'x');
    return 16.0 * static_cast<double>(large.size()) * per_second(kSeconds, [&] {
             push(large, 16);
             pop("16");
             drain(connection);
           });
  });
  connection.command({"DEL", list});
  const auto add = [&] {
    for (std::size_t i = 0; i < kElements; ++i) connection.append({"XADD", stream, "*", "m", element});
    connection.flush();
  };
  floors.add("redis_stream_add_per_second", "1/s", "XADD of 64-byte entries, 512 in a pipeline",
             [&] { return pipelined_per_second(connection, kElements, add); });
  drain(connection);
  floors.add("redis_stream_read_per_second", "1/s", "XREAD of 64-byte entries, 512 a command", [&] {
    return static_cast<double>(kElements) *
           per_second(kSeconds, [&] { connection.command({"XREAD", "COUNT", count, "STREAMS", stream, "0"}); });
  });
  connection.command({"DEL", stream});
  return floors.take();
}

#ifndef FEEDRATE_WITH_CUDA
void add_cuda_floors(FloorList&, Device&) {}
#endif

}  // namespace feedrate

#include "experiments/floors/floors.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/redis/own_keys.hpp"
#include "common/threads.hpp"
#include "features.hpp"

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

/// How late a thread that does nothing but look comes to what happens at any moment: the 99th percentile, over threads
/// on all cores but two. Timer ticks and the hypervisor take it away now and then, so under open load no queue
/// whose ends are so many threads has a shorter tail.
double pause_p99_ns() {
  constexpr std::uint64_t kWorthNoting = 200;  // a look takes a tenth of that
  constexpr double kTail = 0.01;
  const unsigned threads = std::max(3u, available_cores()) - 2;
  std::vector<std::future<std::vector<std::uint64_t>>> lookers;
  for (unsigned t = 0; t < threads; ++t) {
    lookers.push_back(std::async(std::launch::async, [] {
      std::vector<std::uint64_t> pauses;
      const auto start = now_ns(), end = start + static_cast<std::uint64_t>(kSeconds * 1e9);
      for (auto last = start, now = start; last < end; last = now) {
        now = now_ns();
        if (now - last > kWorthNoting) pauses.push_back(now - last);
      }
      return pauses;
    }));
  }
  std::vector<std::uint64_t> pauses;
  for (auto& looker : lookers) {
    const auto seen = looker.get();
    pauses.insert(pauses.end(), seen.begin(), seen.end());
  }
  // What happens `t` or more before a pause ends waits for that long. The longest pauses first, until those moments are
  // a hundredth of all.
  std::ranges::sort(pauses, std::greater());
  const double tail = kTail * threads * kSeconds * 1e9;
  double sum = 0;
  for (std::size_t n = 0; n < pauses.size(); ++n) {
    const auto next = static_cast<double>(n + 1 < pauses.size() ? pauses[n + 1] : kWorthNoting);
    sum += static_cast<double>(pauses[n]);
    const double wait = (sum - tail) / static_cast<double>(n + 1);
    if (wait >= next) return wait;
  }
  return static_cast<double>(kWorthNoting);
}

/// The median of several readings: they differ by a factor of up to four.
double host_pause_p99_ns() {
  std::array<double, 7> readings{};
  for (double& reading : readings) reading = pause_p99_ns();
  std::ranges::nth_element(readings, readings.begin() + readings.size() / 2);
  return readings[readings.size() / 2];
}

/// All cores copy, each within memory of its own that no cache holds.
double host_copy_bytes_per_second() {
  constexpr std::size_t kBytes = 64 << 20;
  const unsigned threads = std::min(available_cores(), 16u);
  std::vector<std::future<double>> rates;
  for (unsigned t = 0; t < threads; ++t) {
    rates.push_back(std::async(std::launch::async, [] {
      std::vector<std::byte> from(kBytes), to(kBytes);
      return kBytes * per_second(kSeconds, [&] { std::memcpy(to.data(), from.data(), kBytes); });
    }));
  }
  double total = 0;
  for (auto& rate : rates) total += rate.get();
  return total;
}

constexpr std::size_t kElement = 64;        // bytes
constexpr std::size_t kElements = 512;      // in one command or one pipelined run
constexpr unsigned kRuns = 8;               // pipelined before the replies are awaited
constexpr std::size_t kLargeElements = 64;  // of 64 KiB
constexpr unsigned kConnections = 4;        // what keeps the server busy, and its I/O threads if it has some

void drain(redis::Connection& connection) {
  connection.flush();
  while (connection.unanswered() != 0) connection.read();
}

/// Elements a second of several connections at once. Each repeats: `prepare` untimed, then `work` timed until all is
/// answered; `work` handles kRuns * kElements elements under a key of its own.
using Step = std::function<void(redis::Connection&, const std::string& key)>;
double elements_per_second(const RedisSettings& settings, const std::string& name, const Step& prepare,
                           const Step& work) {
  const auto rate_of = [&](unsigned t) {
    redis::Connection connection(settings.url);
    const std::string key = settings.own_prefix + ":floor:" + name + std::to_string(t);
    double seconds = 0, elements = 0;
    while (seconds < kSeconds) {
      prepare(connection, key);
      drain(connection);
      const auto start = now_ns();
      work(connection, key);
      drain(connection);
      seconds += static_cast<double>(now_ns() - start) / 1e9;
      elements += static_cast<double>(kRuns * kElements);
    }
    connection.command({"DEL", key});
    return elements / seconds;
  };
  std::vector<std::future<double>> rates;  // which hand on a thread's Failure, too
  for (unsigned t = 0; t < kConnections; ++t) rates.push_back(std::async(std::launch::async, rate_of, t));
  double total = 0;
  for (auto& rate : rates) total += rate.get();
  return total;
}

/// An empty key that expires, whenever this process is killed; `create` makes it.
void begin_anew(redis::Connection& connection, const std::string& key, const std::vector<std::string_view>& create) {
  connection.append({"MULTI"});
  connection.append({"DEL", key});
  connection.append(create);
  connection.append({"PEXPIRE", key, redis::kLifetimeMs});
  connection.append({"EXEC"});
}
/// Not quite empty: an empty list is gone, and its expiry with it.
void new_list(redis::Connection& connection, const std::string& key) {
  begin_anew(connection, key, {"LPUSH", key, "x"});
}
void new_stream(redis::Connection& connection, const std::string& key) {
  begin_anew(connection, key, {"XGROUP", "CREATE", key, "floor", "0", "MKSTREAM"});
}
void push(redis::Connection& connection, const std::string& key) {
  static const std::string element(kElement, 'x');
  for (unsigned run = 0; run < kRuns; ++run) {
    connection.begin_command(2 + kElements);
    connection.add_word("LPUSH");
    connection.add_word(key);
    for (std::size_t i = 0; i < kElements; ++i) connection.add_word(element);
    connection.flush();
  }
}
void pop(redis::Connection& connection, const std::string& key) {
  for (unsigned run = 0; run < kRuns; ++run) connection.append({"RPOP", key, std::to_string(kElements)});
}
void add(redis::Connection& connection, const std::string& key) {
  static const std::string element(kElement, 'x');
  for (std::size_t i = 0; i < kRuns * kElements; ++i) connection.append({"XADD", key, "*", "m", element});
}
void read(redis::Connection& connection, const std::string& key) {
  for (unsigned run = 0; run < kRuns; ++run) {
    connection.append({"XREAD", "COUNT", std::to_string(kElements), "STREAMS", key, "0"});
  }
}
void large_elements(redis::Connection& connection, const std::string& key) {
  static const std::string element(64 << 10, 'x');
  for (std::size_t i = 0; i < kLargeElements; ++i) {
    connection.append({"LPUSH", key, element});
    connection.append({"RPOP", key});
  }
}

}  // namespace

void FloorList::add(std::string name, std::string unit, std::string description,
                    const std::function<double()>& measure) {
  Floor floor{std::move(name), 0, std::move(unit), std::move(description), utc_now(), 0};
  const auto start = now_ns();
  try {
    floor.value = measure();
  } catch (const Failure& failure) {  // a broken device will show in the cells, too
    spdlog::warn("the floor {} is left out: {}", floor.name, failure.what());
    return;
  }
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
  floors.add("host_pause_p99_ns", "ns", "how late threads that only look are, on all cores but two, 99th percentile",
             host_pause_p99_ns);
  floors.add("host_copy_bytes_per_second", "bytes/s", "memcpy on all cores, out of cache", host_copy_bytes_per_second);
  if (device.kind() == "cuda") add_cuda_floors(floors, device);
  return floors.take();
}

std::vector<Floor> measure_redis_floors(const RedisSettings& settings) {
  FloorList floors;
  floors.add("redis_round_trip_ns", "ns", "PING and its answer, one spinning connection, median", [&] {
    redis::Connection connection(settings.url);
    return median_ns(2000, [&] {
      connection.append({"PING"});
      while (!connection.try_read()) {
      }  // spins, as the queues do: a sleeping reader's waking is no part of the floor
    });
  });
  const auto measure = [&](const char* name, const char* description, const Step& prepare, const Step& work) {
    floors.add(name, "1/s", description, [&] { return elements_per_second(settings, name, prepare, work); });
  };
  measure("redis_list_push_per_second", "LPUSH of 64 B elements, 512 a command, 4 pipelined connections", new_list,
          push);
  measure(
      "redis_list_pop_per_second", "RPOP of 64 B elements, 512 a command, 4 pipelined connections",
      [](redis::Connection& connection, const std::string& key) {
        new_list(connection, key);
        push(connection, key);
      },
      pop);
  measure("redis_stream_add_per_second", "XADD of 64 B entries, 4 pipelined connections", new_stream, add);
  measure(
      "redis_stream_read_per_second", "XREAD of 64 B entries, 512 a command, 4 pipelined connections",
      [](redis::Connection& connection, const std::string& key) {
        new_stream(connection, key);
        add(connection, key);
      },
      read);
  floors.add("redis_bytes_per_second", "bytes/s",
             "64 KiB elements pushed to a list and popped, 4 pipelined connections", [&] {
               const double elements = elements_per_second(settings, "bytes", new_list, large_elements);
               return elements / (kRuns * kElements) * kLargeElements * (64 << 10);
             });
  return floors.take();
}

#ifndef FEEDRATE_WITH_CUDA
void add_cuda_floors(FloorList&, Device&) {}
#endif

}  // namespace feedrate

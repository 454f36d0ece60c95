#include <algorithm>
#include <cstring>
#include <future>
#include <utility>
#include <vector>

#include "common/clock.hpp"
#include "common/redis/cluster.hpp"
#include "common/redis/own_keys.hpp"
#include "common/redis/service.hpp"

namespace feedrate::redis {
namespace {

constexpr std::size_t kElement = 64;    // bytes per element
constexpr std::size_t kElements = 512;  // per command or pipelined group
constexpr unsigned kRuns = 8;           // pipelined groups before waiting for replies
// With few connections the server handles more commands per event; with many, its I/O threads, if any, are busy. Which
// is faster depends on the machine, so a ceiling is the best of all.
constexpr unsigned kConnections[] = {1, 2, 4};
constexpr const char* kBestOf = ", the best of 1, 2 and 4 pipelined connections";
// Number and size of large elements, in the order of their total size: small totals stay in the caches.
constexpr std::pair<std::size_t, std::size_t> kLarge[] = {{64, 4 << 10}, {16, 64 << 10}, {64, 64 << 10}};

void drain(Connection& connection) {
  connection.flush();
  while (connection.unanswered() != 0) connection.read();
}

/// Calls of `work` per second over several concurrent connections. Each connection repeatedly calls `prepare`, which is
/// not timed, and then `work`, which is timed until all replies have arrived. Each connection has a key of its own.
using Step = std::function<void(Connection&, const std::string& key)>;
double calls_per_second(const RedisSettings& settings, const std::string& name, unsigned connections,
                        const Step& prepare, const Step& work) {
  const auto rate_of = [&](unsigned t) {
    Connection connection(settings.url);
    const std::string key = settings.own_prefix + ":limit:" + name + std::to_string(t);
    double seconds = 0, calls = 0;
    while (seconds < kReadingSeconds) {
      prepare(connection, key);
      drain(connection);
      const auto start = now_ns();
      work(connection, key);
      drain(connection);
      seconds += static_cast<double>(now_ns() - start) / 1e9;
      calls += 1;
    }
    connection.command({"DEL", key});
    return calls / seconds;
  };
  std::vector<std::future<double>> rates;  // futures also propagate a thread's Failure
  for (unsigned t = 0; t < connections; ++t) rates.push_back(std::async(std::launch::async, rate_of, t));
  double total = 0;
  for (auto& rate : rates) total += rate.get();
  return total;
}

/// The highest rate of all numbers of connections.
double best_calls_per_second(const RedisSettings& settings, const std::string& name, const Step& prepare,
                             const Step& work) {
  double best = 0;
  for (const unsigned connections : kConnections) {
    best = std::max(best, calls_per_second(settings, name, connections, prepare, work));
  }
  return best;
}

Step both(const Step& first, const Step& second) {
  return [=](Connection& connection, const std::string& key) {
    first(connection, key);
    second(connection, key);
  };
}

/// Replaces a key with an empty one made by `create`. The key expires, in case this process is killed.
void begin_anew(Connection& connection, const std::string& key, const std::vector<std::string_view>& create) {
  connection.append({"MULTI"});
  connection.append({"DEL", key});
  connection.append(create);
  connection.append({"PEXPIRE", key, kLifetimeMs});
  connection.append({"EXEC"});
}
/// Leaves one element in the list, because Redis deletes an empty list together with its expiry.
void new_list(Connection& connection, const std::string& key) { begin_anew(connection, key, {"LPUSH", key, "x"}); }
void new_stream(Connection& connection, const std::string& key) {
  begin_anew(connection, key, {"XGROUP", "CREATE", key, "limit", "0", "MKSTREAM"});
}
void new_sorted_set(Connection& connection, const std::string& key) {
  begin_anew(connection, key, {"ZADD", key, "0", "x"});
}
void push(Connection& connection, const std::string& key) {
  static const std::string element(kElement, 'x');
  for (unsigned run = 0; run < kRuns; ++run) {
    connection.begin_command(2 + kElements);
    connection.add_word("LPUSH");
    connection.add_word(key);
    for (std::size_t i = 0; i < kElements; ++i) connection.add_word(element);
    connection.flush();
  }
}
Step take(const char* command) {
  return [command](Connection& connection, const std::string& key) {
    for (unsigned run = 0; run < kRuns; ++run) connection.append({command, key, std::to_string(kElements)});
  };
}
void add(Connection& connection, const std::string& key) {
  static const std::string element(kElement, 'x');
  for (std::size_t i = 0; i < kRuns * kElements; ++i) connection.append({"XADD", key, "*", "m", element});
}
void read(Connection& connection, const std::string& key) {
  for (unsigned run = 0; run < kRuns; ++run) {
    connection.append({"XREAD", "COUNT", std::to_string(kElements), "STREAMS", key, "0"});
  }
}
/// A sorted set stores equal elements only once, so each element contains a number.
void add_sorted(Connection& connection, const std::string& key) {
  std::string element(kElement, 'x');
  std::uint64_t number = 0;
  for (unsigned run = 0; run < kRuns; ++run) {
    connection.begin_command(2 + 2 * kElements);
    connection.add_word("ZADD");
    connection.add_word(key);
    for (std::size_t i = 0; i < kElements; ++i) {
      std::memcpy(element.data(), &++number, sizeof number);
      connection.add_word(std::to_string(number));
      connection.add_word(element);
    }
    connection.flush();
  }
}
Step push_and_pop(std::size_t count, std::size_t bytes) {
  return [count, element = std::string(bytes, 'x')](Connection& connection, const std::string& key) {
    for (std::size_t i = 0; i < count; ++i) {
      connection.append({"LPUSH", key, element});
      connection.append({"RPOP", key});
    }
  };
}

}  // namespace

void RedisService::add_limits(LimitList& limits) {
  RedisSettings settings = settings_;
  settings.url = Cluster(settings.url).server_of(settings.own_prefix);
  const Scope scope = service_scope("redis");
  limits.add(
      {"redis_round_trip_ns", Quantity::nanoseconds, scope, "PING and its reply, one spinning connection, median"},
      [&] {
        Connection connection(settings.url);
        const auto ping = [&] {
          connection.append({"PING"});
          while (!connection.try_read()) {
          }  // spins, as the queues do: waking a sleeping reader is not part of the limit
        };
        return median_ns(400, ping, kLongestReadingSeconds);
      });
  const auto measure = [&](const char* name, const std::string& method, const Step& prepare, const Step& work) {
    limits.add({name, Quantity::operations_per_second, scope, method + kBestOf},
               [&] { return kRuns * kElements * best_calls_per_second(settings, name, prepare, work); });
  };
  measure("redis_list_push_per_second", "LPUSH of 64 B elements, 512 per command", new_list, push);
  measure("redis_list_pop_per_second", "RPOP of 64 B elements, 512 per command", both(new_list, push), take("RPOP"));
  measure("redis_sorted_set_add_per_second", "ZADD of 64 B elements, 512 per command", new_sorted_set, add_sorted);
  measure("redis_sorted_set_pop_per_second", "ZPOPMIN of 64 B elements, 512 per command",
          both(new_sorted_set, add_sorted), take("ZPOPMIN"));
  measure("redis_stream_add_per_second", "XADD of 64 B entries", new_stream, add);
  measure("redis_stream_read_per_second", "XREAD of 64 B entries, 512 per command", both(new_stream, add), read);
  limits.add({"redis_bytes_per_second", Quantity::bytes_per_second, scope,
              std::string("elements of 4 and 64 KiB pushed to a list and popped") + kBestOf},
             [&] {
               double best = 0;
               for (const auto& [count, bytes] : kLarge) {
                 const Step work = push_and_pop(count, bytes);
                 best = std::max(best, static_cast<double>(count * bytes) *
                                           best_calls_per_second(settings, "bytes", new_list, work));
               }
               return best;
             });
}

}  // namespace feedrate::redis

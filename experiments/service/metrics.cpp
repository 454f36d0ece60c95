#include "experiments/service/metrics.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/redis/connection.hpp"
#include "variants/queues/redis/partitions.hpp"

namespace feedrate {
namespace {

using Add = void (*)(void* to, const FeedrateMetric*);

/// How many elements a key of any kind holds.
double length_of(redis::Connection& connection, const std::string& key) {
  const std::string type(redis::text(*connection.command({"TYPE", key})));
  const char* command = type == "list" ? "LLEN" : type == "zset" ? "ZCARD" : type == "stream" ? "XLEN" : nullptr;
  return command == nullptr ? 0 : static_cast<double>(connection.command({command, key})->integer);
}

}  // namespace

struct MetricsEndpoint::State {
  explicit State(Watched what) : watched(std::move(what)) {}
  ~State() {
    if (server != nullptr) close(server);
    if (module != nullptr) dlclose(module);
  }

  void collect(Add add, void* to) {
    const auto tell = [&](FeedrateMetricKind kind, const char* name, const char* help, double value) {
      const FeedrateMetric metric{kind, name, help, value};
      add(to, &metric);
    };
    const WorkerMetrics& m = watched.metrics;
    const auto counter = [&](const char* name, const char* help, const WorkerMetrics::Count& count) {
      tell(kFeedrateCounter, name, help, static_cast<double>(count.load()));
    };
    counter("feedrate_tasks_served_total", "Tasks that the device worked on.", m.served);
    counter("feedrate_tasks_failed_total", "Tasks that got a failed result.", m.failed);
    counter("feedrate_tasks_retried_total", "Tasks put back for another attempt.", m.retried);
    counter("feedrate_tasks_buried_total", "Tasks made dead letters by this worker.", m.buried);
    counter("feedrate_suspects_served_total", "Tasks served alone because their worker had died.", m.suspects);
    counter("feedrate_reconnects_total", "Times that the server was lost or refused commands.", m.reconnects);
    std::array<unsigned long long, std::tuple_size_v<decltype(m.batch_buckets)>> counts{};
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = m.batch_buckets[i].load();
    const FeedrateMetric batches{kFeedrateHistogram,
                                 "feedrate_batch_seconds",
                                 "Time from taking a batch of tasks to handing on its results.",
                                 static_cast<double>(m.batch_ns.load()) * 1e-9,
                                 counts.size(),
                                 WorkerMetrics::kBatchSeconds.data(),
                                 counts.data()};
    add(to, &batches);
    tell_server(tell);
    if (!watched.gpu) return;
    if (const auto sample = watched.gpu(false); sample) {
      if (sample->utilisation) {
        tell(kFeedrateGauge, "feedrate_gpu_utilisation", "Share of time in which kernels ran.", *sample->utilisation);
      }
      if (sample->power_w) tell(kFeedrateGauge, "feedrate_gpu_power_watts", "Power of the GPU.", *sample->power_w);
    }
  }

  struct Partition {
    redis_queue::KeyNames names;
    redis::Connection connection;
  };

  void connect() {
    const redis::Cluster cluster(watched.redis.url);
    std::vector<Partition> made;
    for (unsigned i = 0; i < watched.partitions; ++i) {
      const RedisSettings redis = redis_queue::partition_of(watched.redis, i, watched.partitions, cluster);
      made.push_back({redis_queue::KeyNames(redis.prefix), redis::Connection(redis.url)});
    }
    partitions = std::move(made);
  }

  /// What the server says, over connections of its own; made again after one was lost.
  template <class Tell>
  void tell_server(const Tell& tell) {
    try {
      if (partitions.empty()) connect();
      using Names = redis_queue::KeyNames;
      using Key = std::string (Names::*)() const;
      const auto gauge = [&](const char* name, const char* help, Key key) {
        double sum = 0;
        for (Partition& part : partitions) sum += length_of(part.connection, (part.names.*key)());
        tell(kFeedrateGauge, name, help, sum);
      };
      gauge("feedrate_queue_depth", "Elements that wait for a worker.", &Names::tasks);
      gauge("feedrate_suspects", "Messages of dead workers that wait to be served alone.", &Names::suspects);
      gauge("feedrate_delayed", "Tasks that wait for another attempt.", &Names::delayed);
      gauge("feedrate_dead_letters", "Dead letters that are kept.", &Names::dead);
      double workers = 0;  // each has a lease in every partition
      for (auto& [names, connection] : partitions) {
        const std::string now = std::to_string(redis_queue::unix_ms());
        workers = std::max(workers,
                           static_cast<double>(connection.command({"ZCOUNT", names.leases(), now, "+inf"})->integer));
      }
      tell(kFeedrateGauge, "feedrate_workers", "Workers whose lease has not ended.", workers);
      tell(kFeedrateGauge, "feedrate_server_up", "Whether the Redis server answers.", 1);
    } catch (const std::exception&) {  // none may leave through the module, which is C
      partitions.clear();
      tell(kFeedrateGauge, "feedrate_server_up", "Whether the Redis server answers.", 0);
    }
  }

  bool healthy(char* reason, std::size_t size) const {
    if (!watched.metrics.connected) {
      std::snprintf(reason, size, "not connected to the server");
      return false;
    }
    const std::uint64_t alive = watched.metrics.alive_ns.load();  // before the clock is read
    const double silent = static_cast<double>(now_ns() - alive) * 1e-9;
    if (silent <= watched.lease_seconds) return true;
    std::snprintf(reason, size, "did not look for work for %.1f s", silent);
    return false;
  }

  Watched watched;
  std::vector<Partition> partitions;
  void* module = nullptr;
  void* server = nullptr;
  decltype(&feedrate_metrics_close) close = nullptr;
};

MetricsEndpoint::MetricsEndpoint(const std::string& address, Watched watched)
    : state_(std::make_unique<State>(std::move(watched))) {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "feedrate_metrics.so";
  State& state = *state_;
  state.module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (state.module == nullptr) {
    throw BadInput("--metrics", address,
                   fmt::format("nothing here: {} (Debian's package prometheus-cpp-dev, and a new build)", dlerror()));
  }
  const auto open = reinterpret_cast<decltype(&feedrate_metrics_open)>(dlsym(state.module, "feedrate_metrics_open"));
  state.close = reinterpret_cast<decltype(&feedrate_metrics_close)>(dlsym(state.module, "feedrate_metrics_close"));
  const FeedrateMetricsSource source{&state,
                                     [](void* self, Add add, void* to) { static_cast<State*>(self)->collect(add, to); },
                                     [](void* self, char* reason, std::size_t size) {
                                       return static_cast<const State*>(self)->healthy(reason, size) ? 1 : 0;
                                     },
                                     state.watched.worker.c_str()};
  std::array<char, 256> reason{};
  state.server = open(address.c_str(), &source, reason.data(), reason.size());
  if (state.server == nullptr) {
    throw BadInput("--metrics", address, fmt::format("[HOST:]PORT that is free ({})", reason.data()));
  }
}

MetricsEndpoint::~MetricsEndpoint() = default;

}  // namespace feedrate

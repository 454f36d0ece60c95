#include "experiments/daemons/worker_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "common/clock.hpp"
#include "common/redis/cluster.hpp"

namespace feedrate {
namespace {

/// How many elements a key of any kind holds.
double length_of(redis::Connection& connection, const std::string& key) {
  const std::string type(redis::text(*connection.command({"TYPE", key})));
  const char* command = type == "list" ? "LLEN" : type == "zset" ? "ZCARD" : type == "stream" ? "XLEN" : nullptr;
  return command == nullptr ? 0 : static_cast<double>(connection.command({command, key})->integer);
}

}  // namespace

void WorkerSource::collect(const Add& add) {
  const auto tell = [&](FeedrateMetricKind kind, const char* name, const char* help, double value) {
    add({kind, name, help, value});
  };
  const WorkerMetrics& m = watched_.metrics;
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
  add(batches);
  tell_server(add);
  if (!watched_.gpu) return;
  if (const auto sample = watched_.gpu(false); sample) {
    if (sample->utilisation) {
      tell(kFeedrateGauge, "feedrate_gpu_utilisation", "Share of time in which kernels ran.", *sample->utilisation);
    }
    if (sample->power_w) tell(kFeedrateGauge, "feedrate_gpu_power_watts", "Power of the GPU.", *sample->power_w);
  }
}

void WorkerSource::connect() {
  const redis::Cluster cluster(watched_.redis.url);
  std::vector<Partition> made;
  for (unsigned i = 0; i < watched_.partitions; ++i) {
    const RedisSettings redis = redis_queue::partition_of(watched_.redis, i, watched_.partitions, cluster);
    made.push_back({redis_queue::KeyNames(redis.prefix), redis::Connection(redis.url)});
  }
  partitions_ = std::move(made);
}

void WorkerSource::tell_server(const Add& add) {
  const auto tell = [&](const char* name, const char* help, double value) { add({kFeedrateGauge, name, help, value}); };
  try {
    if (partitions_.empty()) connect();
    using Names = redis_queue::KeyNames;
    using Key = std::string (Names::*)() const;
    const auto gauge = [&](const char* name, const char* help, Key key) {
      double sum = 0;
      for (Partition& part : partitions_) sum += length_of(part.connection, (part.names.*key)());
      tell(name, help, sum);
    };
    gauge("feedrate_queue_depth", "Elements that wait for a worker.", &Names::tasks);
    gauge("feedrate_suspects", "Messages of dead workers that wait to be served alone.", &Names::suspects);
    gauge("feedrate_delayed", "Tasks that wait for another attempt.", &Names::delayed);
    gauge("feedrate_dead_letters", "Dead letters that are kept.", &Names::dead);
    double workers = 0;  // each has a lease in every partition
    for (auto& [names, connection] : partitions_) {
      const std::string now = std::to_string(redis_queue::unix_ms());
      workers =
          std::max(workers, static_cast<double>(connection.command({"ZCOUNT", names.leases(), now, "+inf"})->integer));
    }
    tell("feedrate_workers", "Workers whose lease has not ended.", workers);
    tell("feedrate_server_up", "Whether the Redis server answers.", 1);
  } catch (const std::exception&) {  // none may leave through the module, which is C
    partitions_.clear();
    tell("feedrate_server_up", "Whether the Redis server answers.", 0);
  }
}

std::string WorkerSource::why_unhealthy() const {
  if (!watched_.metrics.connected) return "not connected to the server";
  const std::uint64_t alive = watched_.metrics.alive_ns.load();  // before the clock is read
  const double silent = static_cast<double>(now_ns() - alive) * 1e-9;
  return silent <= watched_.lease_seconds ? "" : fmt::format("did not look for work for {:.1f} s", silent);
}

}  // namespace feedrate

#include "experiments/daemons/worker_source.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "common/clock.hpp"

namespace feedrate {
void WorkerSource::collect(const Add& add) {
  const auto tell = [&](FeedrateMetricKind kind, const char* name, const char* help, double value) {
    add({kind, name, help, value});
  };
  const WorkerMetrics& m = watched_.metrics;
  const auto counter = [&](const char* name, const char* help, const WorkerMetrics::Count& count) {
    tell(kFeedrateCounter, name, help, static_cast<double>(count.load()));
  };
  counter("feedrate_tasks_served_total", "Tasks that the device processed.", m.served);
  counter("feedrate_tasks_failed_total", "Tasks that got a failed result.", m.failed);
  counter("feedrate_tasks_retried_total", "Tasks put back for another attempt.", m.retried);
  counter("feedrate_tasks_buried_total", "Tasks made dead letters by this worker.", m.buried);
  counter("feedrate_suspects_served_total", "Tasks served alone because their worker had died.", m.suspects);
  counter("feedrate_reconnects_total", "Number of times that the server was lost or rejected commands.", m.reconnects);
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
  const auto gauge = [&](const char* name, const char* help, double value) { tell(kFeedrateGauge, name, help, value); };
  constexpr auto kUp = "feedrate_server_up", kUpHelp = "1 if the queue's server responds, otherwise 0.";
  try {
    watched_.queue.collect(gauge);
    gauge(kUp, kUpHelp, 1);
  } catch (const std::exception&) {  // no exception may pass through the module, which is C
    gauge(kUp, kUpHelp, 0);
  }
  if (!watched_.gpu) return;
  if (const auto sample = watched_.gpu(false); sample) {
    if (sample->utilisation) {
      tell(kFeedrateGauge, "feedrate_gpu_utilisation", "Share of time in which kernels ran.", *sample->utilisation);
    }
    if (sample->power_w) tell(kFeedrateGauge, "feedrate_gpu_power_watts", "Power of the GPU.", *sample->power_w);
  }
}

std::string WorkerSource::why_unhealthy() const {
  if (!watched_.metrics.connected) return "not connected to the server";
  const std::uint64_t alive = watched_.metrics.alive_ns.load();  // read before the clock
  const double silent = static_cast<double>(now_ns() - alive) * 1e-9;
  return silent <= watched_.queue.longest_silence() ? "" : fmt::format("has not polled for work for {:.1f} s", silent);
}

}  // namespace feedrate

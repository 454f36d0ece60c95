#pragma once
#include <memory>
#include <string>

#include "common/redis/settings.hpp"
#include "experiments/machine/gpu_sample.hpp"
#include "experiments/service/metrics_module.hpp"
#include "variants/worker_metrics.hpp"

namespace feedrate {

/// A worker's metrics and health over HTTP: GET /metrics in Prometheus' text format, GET /healthz with 200 or 503.
class MetricsEndpoint {
 public:
  struct Watched {
    const WorkerMetrics& metrics;
    RedisSettings redis;
    unsigned partitions;
    GpuSource gpu;  ///< empty without a GPU
    std::string worker;
    double lease_seconds;  ///< a worker that did not look for work for so long is not healthy
  };
  /// Throws BadInput naming `--metrics` where nothing can be served at the address, or the module is missing.
  MetricsEndpoint(const std::string& address, Watched);
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace feedrate

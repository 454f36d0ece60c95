#pragma once
#include <vector>

#include "common/redis/connection.hpp"
#include "common/redis/settings.hpp"
#include "experiments/harness/machine/gpu_sample.hpp"
#include "experiments/daemons/metrics.hpp"
#include "variants/feeding/queues/redis/partitions.hpp"
#include "variants/feeding/worker_metrics.hpp"

namespace feedrate {

/// A worker's figures, those of its queue on the server, and the GPU's.
class WorkerSource final : public MetricsSource {
 public:
  struct Watched {
    const WorkerMetrics& metrics;
    RedisSettings redis;
    unsigned partitions;
    GpuSource gpu;         ///< empty without a GPU
    double lease_seconds;  ///< a worker that did not look for work for so long is not healthy
  };
  explicit WorkerSource(Watched watched) : watched_(std::move(watched)) {}
  void collect(const Add&) override;
  std::string why_unhealthy() const override;

 private:
  struct Partition {
    redis_queue::KeyNames names;
    redis::Connection connection;
  };
  void connect();
  void tell_server(const Add&);

  Watched watched_;
  std::vector<Partition> partitions_;  // connections of its own; made again after one was lost
};

}  // namespace feedrate

#pragma once
#include "experiments/daemons/metrics.hpp"
#include "experiments/harness/machine/gpu_sample.hpp"
#include "variants/feeding/queue_watch.hpp"
#include "variants/feeding/worker_metrics.hpp"

namespace feedrate {

/// Metrics of a worker, of its queue on the server, and of the GPU.
class WorkerSource final : public MetricsSource {
 public:
  struct Watched {
    const WorkerMetrics& metrics;
    QueueWatch& queue;
    GpuSource gpu;  ///< empty without a GPU
  };
  explicit WorkerSource(Watched watched) : watched_(std::move(watched)) {}
  void collect(const Add&) override;
  std::string why_unhealthy() const override;

 private:
  Watched watched_;
};

}  // namespace feedrate

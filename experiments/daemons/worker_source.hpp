#pragma once
#include "experiments/daemons/metrics.hpp"
#include "experiments/harness/machine/gpu_sample.hpp"
#include "variants/feeding/queue_watch.hpp"
#include "variants/feeding/worker_metrics.hpp"

namespace feedrate {

/// A worker's figures, those of its queue on the server, and the GPU's.
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

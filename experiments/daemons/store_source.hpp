#pragma once
#include "experiments/daemons/metrics.hpp"
#include "libraries/tensors/store/daemon.hpp"

namespace feedrate {

/// Metrics of a tensor store.
class StoreSource final : public MetricsSource {
 public:
  explicit StoreSource(tensors::Daemon& daemon) : daemon_(daemon) {}
  void collect(const Add&) override;
  std::string why_unhealthy() const override;

 private:
  tensors::Daemon& daemon_;
};

}  // namespace feedrate

#pragma once
#include <functional>
#include <memory>
#include <string>

#include "experiments/daemons/metrics_module.hpp"

namespace feedrate {

/// Source of a service's metrics and health. Called from threads of the endpoint, one at a time; must not throw.
class MetricsSource {
 public:
  using Add = std::function<void(const FeedrateMetric&)>;
  virtual ~MetricsSource() = default;
  virtual void collect(const Add&) = 0;
  /// Reason why the service is unhealthy; empty if it is healthy.
  virtual std::string why_unhealthy() const = 0;
};

/// A service's metrics and health over HTTP: GET /metrics in Prometheus' text format, GET /healthz with 200 or 503.
class MetricsEndpoint {
 public:
  struct Label {  ///< attached to all metrics
    const char* name;
    std::string value;
  };
  /// Throws BadInput naming `--metrics` if the address cannot be served or the module is missing.
  MetricsEndpoint(const std::string& address, const Label&, MetricsSource&);
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace feedrate

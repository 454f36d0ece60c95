#pragma once
#include <functional>
#include <string>

namespace feedrate {

/// Monitors a queue that a worker in a separate process serves, for the worker's log, metrics and health.
class QueueWatch {
 public:
  virtual ~QueueWatch() = default;
  /// A short description of where the tasks are stored.
  virtual std::string source() const = 0;
  /// Time in seconds after which a worker that has not polled is unhealthy.
  virtual double longest_silence() const = 0;
  /// Adds gauges for waiting tasks and workers. Used by one thread, over separate connections. Throws ServiceFailure.
  using Add = std::function<void(const char* name, const char* help, double value)>;
  virtual void collect(const Add&) = 0;
};

}  // namespace feedrate

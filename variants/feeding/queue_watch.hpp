#pragma once
#include <functional>
#include <string>

namespace feedrate {

/// A queue that a worker in a process of its own serves, seen from beside: for its log, metrics and health.
class QueueWatch {
 public:
  virtual ~QueueWatch() = default;
  /// Where its tasks lie, in a few words.
  virtual std::string source() const = 0;
  /// A worker that has not polled for this long, seconds, is not healthy.
  virtual double longest_silence() const = 0;
  /// Adds gauges: what waits, who works. Used by one thread, over connections of its own. Throws ServiceFailure.
  using Add = std::function<void(const char* name, const char* help, double value)>;
  virtual void collect(const Add&) = 0;
};

}  // namespace feedrate

#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "common/histogram.hpp"
#include "experiments/tracker.hpp"
#include "variants/queue.hpp"

namespace feedrate {

struct Counts {
  std::uint64_t sent = 0, received = 0, lost = 0, duplicated = 0, corrupted = 0, reordered = 0;
  bool clean() const { return lost == 0 && duplicated == 0 && corrupted == 0; }
};

/// One timed stretch of load: until `seconds` have passed, or exactly `messages` were sent when that is not 0.
struct Pass {
  double seconds = 0.5;
  std::uint64_t messages = 0;
  unsigned sample_every = 1;  ///< a power of two: which share of the messages is timed
};

struct PassResult {
  double seconds = 0;          ///< what `received` took
  std::uint64_t received = 0;  ///< verified in that time
  Histogram latency;           ///< from just before publish until the result was verified, ns
};

struct LoadSettings {
  std::uint64_t seed = 1;
  bool pin_threads = false;
  double watchdog_seconds = 10;            ///< without a single result
  std::function<bool()> interrupted = {};  ///< asked every millisecond
};

/// The closed-loop load: per producer one thread that keeps `window` messages in flight and one that collects and
/// verifies. Passes follow each other on the same queue with continuing sequence numbers; between them nothing is in
/// flight.
class ClosedLoop {
 public:
  ClosedLoop(Queue&, const Point&, const Workload&, Device&, const LoadSettings&);
  ~ClosedLoop();
  /// Throws Failure when the queue breaks or the watchdog strikes.
  PassResult run(const Pass&);
  /// After the queue has stopped: results that still come answer nothing that is open, and count as duplicated.
  void collect_leftovers();
  /// Of all passes together.
  Counts counts() const;

 private:
  struct Flow;
  void produce(Flow&, const Pass&);
  void collect(Flow&, const Pass&);
  /// Verifies and counts results whose ids count up: all at once when they are as they should be, else one by one.
  void take_run(Flow&, const Pass&, const ConstMessages& run);
  void take_one_by_one(Flow&, const Pass&, const ConstMessages& run);
  /// Waits for the end of the load that began at `start`; fills in the seconds and the results in them.
  void supervise(const Pass&, std::uint64_t start, std::uint64_t received_before, PassResult&);
  std::uint64_t received() const;
  void guarded(const std::function<void()>& body);

  Queue& queue_;
  Point point_;
  const Workload& workload_;
  Device& device_;
  LoadSettings settings_;
  bool queue_works_;
  std::vector<std::unique_ptr<Flow>> flows_;
  std::atomic<bool> stop_sending_{false}, abort_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace feedrate

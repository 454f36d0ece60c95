#pragma once
#include <exception>
#include <functional>
#include <mutex>

#include "common/error.hpp"
#include "experiments/feeding/flow.hpp"
#include "experiments/harness/load/result.hpp"

namespace feedrate {

struct PassResult : LoadResult {
  double mean_payload = 0;  ///< bytes of a message
  bool steady = false;      ///< ended because the rate had no trend any more
  std::vector<StageSample> stages;  ///< of sampled messages
};

struct LoadSettings {
  std::uint64_t seed = 1;
  bool pin_threads = false;
  double watchdog_seconds = 10;            ///< without a single result, while some are awaited
  std::function<bool()> interrupted = {};  ///< asked every millisecond
  double longest_pass_seconds = 0;         ///< a pass that takes longer is given up; 0: it never is
};

/// A pass took longer than it may; its messages are lost with the queue.
class PassGivenUp : public Failure {
 public:
  using Failure::Failure;
};

/// A load on a queue: per producer one thread that sends and one that collects and verifies. Closed: each producer
/// keeps `window` messages in flight; of a phase that is measured in seconds, its first window fills the pipe and
/// counts neither as throughput nor as latency. Open: a schedule says when messages are due, whatever comes back;
/// `window` is then what the queue takes before it pushes back. Passes follow each other on the same queue with
/// continuing sequence numbers; between them nothing is in flight.
class Load {
 public:
  /// `stages`: the clock that the queue was given, if it was.
  Load(Queue&, const Point&, const Payloads&, Device&, const LoadSettings&, StageClock* stages = nullptr);
  ~Load();
  /// Throws Failure when the queue breaks or the watchdog strikes, PassGivenUp when the pass takes too long.
  PassResult run(const Pass&);
  /// Call it after the queue has stopped. Results that still come match no open message and count as duplicated.
  void collect_leftovers();
  /// Of all passes together.
  Counts counts() const;
  /// What was expected and found in one of the corrupted results; empty when there is none. After a pass.
  std::string first_wrong() const;

 private:
  class Supervision;
  std::uint64_t received() const;
  void guarded(const std::function<void()>& body);
  void send(Flow&, const Pass&);

  Queue& queue_;
  Work work_;
  Device& device_;
  LoadSettings settings_;
  std::vector<std::unique_ptr<Flow>> flows_;
  std::atomic<bool> stop_sending_{false}, abort_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace feedrate

#pragma once
#include <exception>
#include <functional>
#include <mutex>

#include "common/error.hpp"
#include "experiments/feeding/flow.hpp"
#include "experiments/harness/load/offer.hpp"

namespace feedrate {

struct PassResult : LoadResult {
  double mean_payload = 0;          ///< mean payload bytes per message
  bool steady = false;              ///< ended because the rate no longer had a trend
  bool changing = false;            ///< ended at its limit while the rate certainly had a trend
  std::vector<StageSample> stages;  ///< stage times of sampled messages
};

struct LoadSettings {
  std::uint64_t seed = 1;
  bool pin_threads = false;
  double watchdog_seconds = 10;            ///< longest time without a result while results are pending
  std::function<bool()> interrupted = {};  ///< polled every millisecond
  double longest_pass_seconds = 0;         ///< a pass that takes longer is given up; 0: never
};

/// A pass exceeded its time limit; its messages are lost with the queue.
class PassGivenUp : public Failure {
 public:
  using Failure::Failure;
};

/// A load on a queue, with one sending thread and one collecting and verifying thread per producer. Closed load: each
/// producer keeps `window` messages in flight; in a phase measured in seconds, the first window only fills
/// the pipeline and counts toward neither throughput nor latency. Open load: a schedule determines when messages are
/// due, regardless of the results; `window` is then the number of messages that the queue takes before it pushes back.
/// Successive passes use the same queue with continuing sequence numbers; nothing is in flight between them.
class Load {
 public:
  /// `stages`: the clock given to the queue, if any.
  Load(Queue&, const Point&, const Payloads&, Device&, const LoadSettings&, StageClock* stages = nullptr);
  ~Load();
  /// Throws Failure if the queue fails or the watchdog expires, PassGivenUp if the pass takes too long.
  PassResult run(const Pass&);
  /// Polls for late results after the queue has stopped. They match no outstanding message and count as duplicates.
  void collect_leftovers();
  /// Totals over all passes.
  Counts counts() const;
  /// Expected and actual content of the first corrupted result; empty if there is none. Call it after a pass.
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

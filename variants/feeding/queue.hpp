#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/device/device.hpp"
#include "common/limits/limit_list.hpp"
#include "common/message/message.hpp"
#include "common/message/stages.hpp"
#include "common/registry.hpp"
#include "common/service.hpp"
#include "kernels/workload.hpp"
#include "variants/feeding/bounds.hpp"
#include "variants/feeding/dead_letters.hpp"
#include "variants/feeding/queue_watch.hpp"

namespace feedrate {

/// The sending end of a queue, used by one thread.
class Producer {
 public:
  virtual ~Producer() = default;
  /// Returns up to `n` messages to be written in place; none if the queue is full. In that case, try again later:
  /// nothing is ever dropped. Repeated calls return the same messages until the next publish.
  virtual Messages reserve(std::size_t n) = 0;
  /// Sends the first `n` reserved messages.
  virtual void publish(std::size_t n) = 0;
  /// Sends published messages that could not be sent at once. Never blocks.
  virtual void progress() {}
};

/// The receiving end of a queue, used by one thread.
class Collector {
 public:
  virtual ~Collector() = default;
  /// Returns results that have arrived, at most `n`, possibly none. Never blocks. They stay valid until released.
  virtual ConstMessages poll(std::size_t n) = 0;
  virtual void release(std::size_t n) = 0;
};

/// The resources that a queue occupies; every row records them.
struct Cost {
  unsigned host_threads = 0;  ///< threads of the queue itself; the load generator adds its producers and collectors
  unsigned sms = 0;           ///< SMs permanently held by resident blocks (at most one SM per block)
};

/// Carries messages from producers to the device and results back. A queue is built for one point. Its constructor
/// allocates everything, so that nothing is allocated, loaded or connected while it runs.
class Queue {
 public:
  virtual ~Queue() = default;
  /// `index` counts producers; results go to the collector with the same index. The queue outlives the ends it creates.
  virtual std::unique_ptr<Producer> producer(unsigned index) = 0;
  virtual std::unique_ptr<Collector> collector(unsigned index) = 0;
  /// Starts the serving side. Called only once: a stopped queue is not restarted.
  virtual void start() = 0;
  /// Stops the serving side; with `drain`, only after all accepted messages are served and can be collected (a broker
  /// may keep the rest). Safe to call twice.
  virtual void stop(bool drain) = 0;
  /// Throws Failure if the serving side has failed. The load generator calls this function at intervals.
  virtual void check() {}
  virtual Cost cost() const = 0;
  virtual Choices choices() const { return {}; }
  /// Whether accepted messages survive the end of this process and a crash of the server that holds them.
  virtual bool durable() const { return false; }
};

struct WorkerMetrics;  // variants/feeding/worker_metrics.hpp

struct QueueConfig {
  Point point;  ///< normalised
  Device& device;
  const Workload& workload;
  const Service* service = nullptr;  ///< the service that the queue needs, already started
  bool external_worker = false;      ///< for broker queues: the worker is another process
  Limits limits = {};
  StageClock* stages = nullptr;  ///< records the times of sampled messages; may be null
  /// Writes correct results for messages with consecutive ids, starting at `first_id`; for a queue that does no work
  /// but whose results are compared. May be empty.
  std::function<void(std::uint64_t first_id, const Messages&)> answers = {};
  WorkerMetrics* metrics = nullptr;  ///< counters of a worker in a separate process; may be null
  bool resumed = false;              ///< true if a worker in a separate process resumes after losing its server

  std::size_t in_stride() const { return stride_of(point.payload); }
  std::size_t out_stride() const { return stride_of(workload.result_bytes(point.payload)); }
};

class Broker;  // variants/feeding/worker.hpp

/// Number of times that a message sent once is served if a fault occurs. Losses and duplicates that the guarantee
/// allows do not fail a cell; they are counted and shown.
enum class Delivery {
  exactly_once,   ///< in process: a fault ends the process
  at_most_once,   ///< a fault may lose a message; none is delivered twice
  at_least_once,  ///< a message may be delivered twice; none is lost
  none,           ///< nothing is delivered
};
constexpr const char* text_of(Delivery delivery) {
  switch (delivery) {
    case Delivery::exactly_once:
      return "exactly once in process";
    case Delivery::at_most_once:
      return "at most once";
    case Delivery::at_least_once:
      return "at least once";
    default:
      return "nothing is delivered";
  }
}

/// The guarantees of a queue.
struct Guarantee {
  Delivery delivery = Delivery::exactly_once;
  std::string order = "per producer";  ///< or "per producer with one worker", "per lane"
  bool durable = false;                ///< messages can survive, if their server persists them (Queue::durable)
};

/// Support for a queue's workers in separate processes (`feedrate worker`).
struct ExternalWorkers {
  std::function<std::unique_ptr<Broker>(const QueueConfig&, const std::string& consumer)> broker;
  /// Monitors the queue that such a worker serves.
  std::function<std::unique_ptr<QueueWatch>(const QueueConfig&)> watch;
  /// Access to the queue's dead letters, if it keeps them.
  std::function<std::unique_ptr<DeadLetterBox>(const Service&)> dead_letters = {};
};

struct QueueEntry {
  std::string description;
  Guarantee guarantee = {};
  bool uses_transfer = false;
  std::string service = {};  ///< name of the service that the queue needs
  bool resident = false;     ///< whether a resident kernel serves the queue
  /// False if the queue transfers no messages. Its results have no ids; comparing them only adds the usual cost.
  bool works = true;
  std::vector<Axis> axes = {};  ///< the queue's own axes
  std::function<std::unique_ptr<Queue>(const QueueConfig&)> make;
  /// Chooses the values that the point leaves open. Returns the reason why the point is invalid; empty if it is valid.
  std::function<std::string(Point&, Device&, const Workload&)> why_unsupported = {};
  /// Measures the limits that only this queue needs.
  std::function<void(LimitList&)> limits = {};
  /// States the limits that bound the queue at a point.
  std::function<void(const BoundedPoint&, Bounds&)> bounds = {};
  /// The queue's own axes that affect its speed, with the values that a search for the best settings tries.
  std::vector<AxisValues> search = {};
  /// Set if `feedrate worker` can serve this queue; `service` is then set as well.
  std::optional<ExternalWorkers> workers = {};
};
using Queues = Registry<QueueEntry>;
using QueueRegistration = Registration<QueueEntry>;

inline bool has_workers(const QueueEntry& queue) { return queue.workers.has_value(); }
inline bool keeps_letters(const QueueEntry& queue) { return queue.workers && queue.workers->dead_letters; }
/// The names of the queues for which `holds` is true, for example "redis_list, redis_stream".
std::string names_of_queues(bool (*holds)(const QueueEntry&));
/// The names of the services that these queues need.
std::set<std::string> services_of_queues(bool (*holds)(const QueueEntry&));

/// Reason why `slots` slots for messages and the same number for results cannot be allocated; empty if they can.
std::string why_too_many_slots(std::size_t slots, std::size_t message_bytes, std::size_t result_bytes);

/// A `make` that constructs Q from its config.
template <class Q>
std::unique_ptr<Queue> make_queue(const QueueConfig& config) {
  return std::make_unique<Q>(config);
}

}  // namespace feedrate

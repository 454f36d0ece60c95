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
  /// Up to `n` messages to be written in place; empty means full: try again later, nothing is ever dropped. Until the
  /// next publish, they lie in the same place however often they are asked for.
  virtual Messages reserve(std::size_t n) = 0;
  /// Sends the first `n` reserved messages.
  virtual void publish(std::size_t n) = 0;
  /// Moves on what was published but could not be sent at once. Never blocks.
  virtual void progress() {}
};

/// The receiving end of a queue, used by one thread.
class Collector {
 public:
  virtual ~Collector() = default;
  /// Results that have arrived, at most `n`; may be empty, never blocks. They stay until released.
  virtual ConstMessages poll(std::size_t n) = 0;
  virtual void release(std::size_t n) = 0;
};

/// What a queue's use occupies and promises; stands in every row beside the figures.
struct Cost {
  unsigned host_threads = 0;  ///< that the queue itself runs; the driver adds its producers and collectors
  unsigned sms = 0;           ///< held all the time by resident blocks (at most one SM a block)
};

/// Carries messages from producers to the device and results back. Built for one point; constructing it allocates
/// everything, so that nothing needs to be allocated, loaded or connected while it runs.
class Queue {
 public:
  virtual ~Queue() = default;
  /// `index` counts producers; results return to the collector of the same index. The queue outlives what it made.
  virtual std::unique_ptr<Producer> producer(unsigned index) = 0;
  virtual std::unique_ptr<Collector> collector(unsigned index) = 0;
  /// Once: a queue that was stopped is not started again.
  virtual void start() = 0;
  /// Stops the serving side; with `drain`, only after all that it has accepted is served and collectable (a broker may
  /// keep the rest). Safe to call twice.
  virtual void stop(bool drain) = 0;
  /// Throws Failure if the serving side has broken; called now and then by the driver.
  virtual void check() {}
  virtual Cost cost() const = 0;
  virtual Choices choices() const { return {}; }
};

struct WorkerMetrics;  // variants/feeding/worker_metrics.hpp

struct QueueConfig {
  Point point;  ///< normalised
  Device& device;
  const Workload& workload;
  const Service* service = nullptr;  ///< that the queue needs, started
  bool external_worker = false;      ///< broker queues: another process works
  Limits limits = {};
  StageClock* stages = nullptr;  ///< where whoever has a sampled message notes the time; may be missing
  /// Writes right results of messages whose ids count up from the first one's: for a queue that does no work, and yet
  /// has its results compared. May be missing.
  std::function<void(std::uint64_t first_id, const Messages&)> answers = {};
  WorkerMetrics* metrics = nullptr;  ///< of a worker in a process of its own: where it counts; may be missing
  bool resumed = false;              ///< of a worker in a process of its own: it goes on after it had lost its server

  std::size_t in_stride() const { return stride_of(point.payload); }
  std::size_t out_stride() const { return stride_of(workload.result_bytes(point.payload)); }
};

class Broker;  // variants/feeding/worker.hpp

/// How often a message that is sent once is served if something breaks on its way. What the guarantee allows does not
/// fail a cell; it is counted and shown.
enum class Delivery {
  exactly_once,   ///< in process: nothing can break without ending the process
  at_most_once,   ///< a message may be lost by a fault, none comes twice
  at_least_once,  ///< a message may come twice, none is lost
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

/// What a queue promises.
struct Guarantee {
  Delivery delivery = Delivery::exactly_once;
  std::string order = "per producer";  ///< or "per producer with one worker", "per lane"
  bool durable = false;                ///< messages can outlive this process
};

/// Workers of a queue in processes of their own (`feedrate worker`).
struct OutsideWorkers {
  std::function<std::unique_ptr<Broker>(const QueueConfig&, const std::string& consumer)> broker;
  /// What there is to know of the queue that such a worker serves.
  std::function<std::unique_ptr<QueueWatch>(const QueueConfig&)> watch;
  /// Tasks that were given up, if it keeps them.
  std::function<std::unique_ptr<DeadLetterBox>(const Service&)> dead_letters = {};
};

struct QueueEntry {
  std::string description;
  Guarantee guarantee = {};
  bool uses_transfer = false;
  std::string service = {};  ///< that it needs
  bool resident = false;     ///< served by a kernel that stays on the device
  bool works = true;  ///< false: no message travels; results have no ids and are compared without counting the outcome
  std::vector<Axis> axes = {};  ///< of its own
  std::function<std::unique_ptr<Queue>(const QueueConfig&)> make;
  /// Chooses what the point leaves open, and says why the point can't be; empty when it can.
  std::function<std::string(Point&, Device&, const Workload&)> fit = {};
  /// Measures the limits that bind it and that nothing else knows of.
  std::function<void(LimitList&)> limits = {};
  /// Names the limits that bind it at a point.
  std::function<void(const Bounded&, Bounds&)> bounds = {};
  /// Axes of its own that matter to how fast it is, with the values that a search for its best settings tries.
  std::vector<AxisValues> search = {};
  /// Set if `feedrate worker` can serve this queue; `service` is then set, too.
  std::optional<OutsideWorkers> workers = {};
};
using Queues = Registry<QueueEntry>;
using QueueRegistration = Registration<QueueEntry>;

inline bool has_workers(const QueueEntry& queue) { return queue.workers.has_value(); }
inline bool keeps_letters(const QueueEntry& queue) { return queue.workers && queue.workers->dead_letters; }
/// "redis_list, redis_stream": the queues that this holds for.
std::string names_of_queues(bool (*holds)(const QueueEntry&));
/// The services that these queues need.
std::set<std::string> services_of_queues(bool (*holds)(const QueueEntry&));

/// Why `slots` slots for messages, and as many for results, can't be allocated; empty when they can.
std::string refuse_slots(std::size_t slots, std::size_t message_bytes, std::size_t result_bytes);

/// A `make` that constructs Q from its config.
template <class Q>
std::unique_ptr<Queue> make_queue(const QueueConfig& config) {
  return std::make_unique<Q>(config);
}

}  // namespace feedrate

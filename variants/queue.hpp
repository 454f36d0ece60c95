#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/device/device.hpp"
#include "common/message/message.hpp"
#include "common/redis/settings.hpp"
#include "common/registry.hpp"
#include "common/message/stages.hpp"
#include "kernels/workload.hpp"
#include "variants/point.hpp"

namespace feedrate {

/// One thread's way in.
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

/// One thread's way out.
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

/// What a queue chose where the point said "auto" or 0, for the row; by axis.
using Choices = std::map<std::string, std::string>;
/// The machine's floors by name, as far as they were measured.
using Floors = std::map<std::string, double>;

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
  /// Ends the serving side. `drain`: after what it has taken up is served and collectable (a broker may keep the rest).
  /// Safe to call twice.
  virtual void stop(bool drain) = 0;
  /// Throws Failure if the serving side has broken; called now and then by the driver.
  virtual void check() {}
  virtual Cost cost() const = 0;
  virtual Choices choices() const { return {}; }
};

struct QueueConfig {
  Point point;  ///< normalised
  Device& device;
  const Workload& workload;
  RedisSettings redis = {};
  bool external_worker = false;  ///< broker queues: another process works
  Floors floors = {};
  StageClock* stages = nullptr;  ///< where whoever has a sampled message notes the time; may be missing

  std::size_t in_stride() const { return stride_of(point.payload); }
  std::size_t out_stride() const { return stride_of(workload.result_bytes(point.payload)); }
};

class Broker;  // variants/worker.hpp

struct QueueEntry {
  std::string description;
  std::string delivery;  ///< "exactly once in process", "at most once", "at least once"
  std::string order;     ///< "per producer", "per producer with one worker", "per lane"
  bool durable = false;  ///< messages can outlive this process
  bool uses_transfer = false;
  bool uses_redis = false;
  bool uses_lanes = false;
  bool works = true;  ///< false: no message travels; results have no ids and are compared without counting the outcome
  std::function<std::unique_ptr<Queue>(const QueueConfig&)> make;
  /// Chooses what the point leaves open, and says why the point can't be; empty when it can.
  std::function<std::string(Point&, Device&, const Workload&)> fit = {};
  /// Axes of its own that matter to how fast it is, with the values that a search for its best settings tries.
  std::vector<AxisValues> search = {};
  /// A worker's end in a process of its own (`feedrate worker`), where the queue allows that.
  std::function<std::unique_ptr<Broker>(const QueueConfig&, const std::string& consumer)> make_broker = {};
};
using Queues = Registry<QueueEntry>;
using QueueRegistration = Registration<QueueEntry>;

/// A `make` that constructs Q from its config.
template <class Q>
std::unique_ptr<Queue> make_queue(const QueueConfig& config) {
  return std::make_unique<Q>(config);
}

}  // namespace feedrate

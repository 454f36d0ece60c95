#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "feedrate/ring.hpp"
#include "kernels/serving/resident_limits.hpp"
#include "variants/feeding/queues/lane_turn.hpp"
#include "variants/feeding/queues/ring_memory.hpp"

namespace feedrate {
namespace {

/// The queue's own axes. For 0 and "auto", the queue chooses according to the messages' size and number and the
/// machine's limits.
struct RingOptions {
  unsigned lanes = 0;
  unsigned pollers = 0;
  unsigned mirrors = 0;
  std::string granularity = "auto";
  std::string notify = "auto";
  std::string slots = "auto";
  std::string results = "in_order";
  std::string idle = "spin";
  std::size_t slot_bytes = 0;
};
const Axes<RingOptions>& ring_axes() {
  constexpr double kMaxLanes = 4096, kMaxTeams = 16;
  static const auto kAxes =
      Axes<RingOptions>()
          .number("lanes", &RingOptions::lanes, {0, kMaxLanes},
                  "rings, one resident block each; 0 = one per batch in flight, up to 32")
          .number("pollers", &RingOptions::pollers, {0, kMaxTeams},
                  "teams of warps that poll a lane in turn; 0 = by notify and size")
          .number("mirrors", &RingOptions::mirrors, {0, kMaxTeams},
                  "copies of flagged slots for different pollers; 0 = one each for small lone messages, else 1")
          .word("granularity", &RingOptions::granularity, {"auto", "thread", "warp", "block"},
                "threads that work on one message; auto = by size")
          .word("notify", &RingOptions::notify, {"auto", "counter", "flags"},
                "how a side detects messages; auto = flags for a few messages, one at a time")
          .word("slots", &RingOptions::slots, {"auto", "pinned", "vram"},
                "memory from which the GPU reads messages; auto = vram if copies are faster according to the limits")
          .word("results", &RingOptions::results, {"in_order", "as_finished"},
                "the order in which results are returned")
          .word("ring-idle", &RingOptions::idle, {"spin", "backoff", "park"}, "behaviour while no messages arrive")
          .number("slot-bytes", &RingOptions::slot_bytes, {0, kMaxPayload},
                  "payload bytes per slot; 0 = size of the payload");
  return kAxes;
}

/// The words of an axis, in the order of the enumerators.
using Words = std::span<const char* const>;
constexpr const char *kNotify[] = {"counter", "flags"}, *kSlots[] = {"pinned", "vram"},
                     *kResults[] = {"in_order", "as_finished"}, *kIdle[] = {"spin", "backoff", "park"},
                     *kGranularity[] = {"auto", "thread", "warp", "block"};

template <class Value>
Value value_of(Words words, const std::string& word) {
  return static_cast<Value>(std::ranges::find(words, word) - words.begin());
}
template <class Value>
const char* name_of(Words words, Value value) {
  return words[static_cast<std::size_t>(value)];
}

/// Whether copy engines move a batch of this size faster than SMs. The engines have the higher bandwidth in both
/// directions, but each copy costs a fixed time; the crossover follows from the two ceilings and that cost. Returns
/// false if these are unknown.
bool worth_copying(std::size_t batch_bytes, const Limits& limits) {
  const auto engine = feedrate::value_of(limits, "copy_engine_both_bytes_per_second");
  const auto sm = feedrate::value_of(limits, "sm_echo_bytes_per_second"),
             cost = feedrate::value_of(limits, "copy_queued_ns");
  if (!engine || !sm || !cost) return false;
  const auto bytes = static_cast<double>(batch_bytes);
  return bytes / (bytes / *engine + *cost * 1e-9) > *sm;
}

/// The config for a point. Values that the point leaves open are chosen from the sizes and the machine's limits.
RingConfig config_of(const Point& point, std::size_t result_bytes, const Limits& limits) {
  constexpr unsigned kMirroredUnits = 24;
  constexpr std::size_t kFewMessages = 4;  // with at most this many messages in flight, low latency is the goal
  const RingOptions own = ring_axes().of(point.own);
  RingConfig config;
  config.message_bytes = std::max(point.payload, own.slot_bytes);
  config.result_bytes = std::max(result_bytes, own.slot_bytes);
  config.lanes = own.lanes;
  const unsigned lanes_each = own.lanes / point.producers;
  const std::size_t share = (ring_capacity(point) + lanes_each - 1) / lanes_each;
  config.capacity = std::bit_ceil(std::max(share, std::min(point.batch, ring_capacity(point))));
  config.batch = point.batch;
  const bool on_gpu = point.device == "cuda";
  config.block = on_gpu ? point.block : 1024;
  const std::size_t stride = stride_of(std::max(config.message_bytes, config.result_bytes));
  const unsigned units = units_of(stride);
  // Flags give a lone message the lowest latency. The messages of a batch share the round trip and the fence of a
  // cursor, so they are faster without the copies that flags need.
  const bool flags_fit = units <= kUnitsPerThread * config.block && 2 * sizeof(Unit) * units <= kStagingBytes;
  const bool flags = own.notify == "auto"
                         ? point.batch == 1 && point.window <= kFewMessages && flags_fit && own.slots != "vram"
                         : own.notify == "flags";
  config.notify = flags ? Notify::flags : Notify::counter;
  // The GPU has at most two reads of a line in flight, so more than two pollers need mirrors. For large messages,
  // writing the mirrors takes longer than they save.
  const bool worth_mirroring = on_gpu && point.window <= kFewMessages && units <= kMirroredUnits;
  if (own.pollers != 0) {
    config.pollers = own.pollers;
  } else if (flags && on_gpu) {
    const unsigned threads = (units + 32 * kUnitsPerThread - 1) / (32 * kUnitsPerThread) * 32;
    const auto in_shared = static_cast<unsigned>(kStagingBytes / (2 * sizeof(Unit) * units));
    const unsigned most = worth_mirroring || own.mirrors > 2 ? kMaxPollers : 2;
    config.pollers = std::bit_floor(std::clamp(std::min(config.block / threads, in_shared), 1u, most));
  }
  if (!on_gpu) config.block = 1024 / (32 * config.pollers) * (32 * config.pollers);
  if (own.mirrors != 0) {
    config.mirrors = own.mirrors;
  } else if (flags && worth_mirroring) {
    config.mirrors = config.pollers;
  }
  config.results = value_of<ResultOrder>(kResults, own.results);
  config.granularity = value_of<Granularity>(kGranularity, own.granularity);
  config.idle = value_of<RingIdle>(kIdle, own.idle);
  if (own.slots != "auto") {
    config.slots = value_of<Slots>(kSlots, own.slots);
  } else if (!flags && config.results == ResultOrder::in_order && worth_copying(point.batch * stride, limits)) {
    config.slots = Slots::vram;
  }
  return config;
}

/// Uses a producer's lanes in turn and skips full lanes.
class LanesIn final : public Producer {
 public:
  LanesIn(std::vector<RingLane*> lanes, std::size_t most) : lanes_(std::move(lanes)), turn_(most) {}
  Messages reserve(std::size_t n) override {
    for (std::size_t tried = 0; tried < lanes_.size(); ++tried) {
      const Messages room = lanes_[at_]->reserve(n);
      if (!room.empty()) return room;
      turn_.pass_over();
      at_ = (at_ + 1) % lanes_.size();
    }
    return {};
  }
  void publish(std::size_t n) override {
    lanes_[at_]->publish(n);
    if (lanes_.size() > 1 && turn_.ends(n, now_ns)) at_ = (at_ + 1) % lanes_.size();
  }

 private:
  std::vector<RingLane*> lanes_;
  LaneTurn turn_;
  std::size_t at_ = 0;
};

class LanesOut final : public Collector {
 public:
  explicit LanesOut(std::vector<RingLane*> lanes) : lanes_(std::move(lanes)) {}
  ConstMessages poll(std::size_t n) override {
    for (std::size_t tried = 0; tried < lanes_.size(); ++tried) {
      at_ = (at_ + 1) % lanes_.size();
      const ConstMessages results = lanes_[at_]->poll(n);
      if (!results.empty()) return results;
    }
    return {};
  }
  void release(std::size_t n) override { lanes_[at_]->release(n); }

 private:
  std::vector<RingLane*> lanes_;
  std::size_t at_ = 0;
};

/// The library's ring, with a kernel that records the times of sampled messages.
struct MarkedRing final : GpuRing {
  MarkedRing(const QueueConfig& config, const RingConfig& ring)
      : GpuRing(config.device, config.workload, ring,
                config.stages != nullptr ? config.stages->lasting_recorder() : StageRecorder()) {}
};

/// The GPU ring (feedrate/ring.hpp) under the load generator: a producer spreads its batches over its own lanes, so
/// order is kept only within a lane.
class GpuRingQueue final : public Queue {
 public:
  explicit GpuRingQueue(const QueueConfig& config)
      : point_(config.point),
        on_gpu_(config.device.kind() == "cuda"),
        processors_(config.device.info().processors),
        ring_config_(config_of(point_, config.workload.result_bytes(point_.payload), config.limits)),
        ring_(config, ring_config_) {}

  std::unique_ptr<Producer> producer(unsigned index) override {
    constexpr std::size_t kTurnBytes = 4 << 10;
    return std::make_unique<LanesIn>(lanes_of(index), std::min(point_.batch, kTurnBytes / stride_of(point_.payload)));
  }
  std::unique_ptr<Collector> collector(unsigned index) override { return std::make_unique<LanesOut>(lanes_of(index)); }
  void start() override { ring_.start(); }
  void stop(bool drain) override { ring_.stop(drain ? RingStop::drain : RingStop::now); }
  void check() override { ring_.check(); }
  Cost cost() const override {
    if (!on_gpu_) return {.host_threads = ring_.host_threads()};
    return {.sms = std::min(ring_config_.lanes, processors_)};
  }
  Choices choices() const override {
    return {{"slots", name_of(kSlots, ring_config_.slots)},
            {"notify", name_of(kNotify, ring_config_.notify)},
            {"pollers", std::to_string(ring_config_.pollers)},
            {"mirrors", std::to_string(ring_config_.mirrors)}};
  }

 private:
  std::vector<RingLane*> lanes_of(unsigned producer) {
    const unsigned each = ring_config_.lanes / point_.producers;
    std::vector<RingLane*> lanes;
    for (unsigned i = 0; i < each; ++i) lanes.push_back(&ring_.lane(producer * each + i));
    return lanes;
  }

  Point point_;
  bool on_gpu_;
  unsigned processors_;
  RingConfig ring_config_;
  MarkedRing ring_;
};

std::string why_unsupported_lanes(Point& point, Device& device, const Workload& workload) {
  constexpr unsigned kMaxByDefault = 32;
  RingOptions own = ring_axes().of(point.own);
  if (own.lanes == 0) {
    // A lane works on one batch at a time, so lanes in excess of the batches in flight would only poll.
    const auto batches = static_cast<unsigned>(std::min<std::size_t>(kMaxByDefault, point.window / point.batch));
    const unsigned wanted = point.device == "cuda" ? std::max(1u, kMaxByDefault / point.producers) : 1;
    own.lanes = std::max(1u, std::min(wanted, batches)) * point.producers;
    ring_axes().put(own, point.own);
  }
  if (own.lanes % point.producers != 0) {
    return fmt::format("{} lanes cannot be shared evenly by {} producers", own.lanes, point.producers);
  }
  const std::size_t held = std::max(point.producers * std::max(point.window, point.capacity), own.lanes * point.batch);
  if (auto reason = why_too_many_slots(2 * held, std::max(point.payload, own.slot_bytes),
                                       std::max(workload.result_bytes(point.payload), own.slot_bytes));
      !reason.empty()) {
    return reason;
  }
  return why_unsupported(config_of(point, workload.result_bytes(point.payload), {}), device, workload);
}

bool chose(const BoundedPoint& bounded, const std::string& axis, const std::string& value) {
  const auto found = bounded.choices.find(axis);
  return found != bounded.choices.end() && found->second == value;
}

void bound(const BoundedPoint& bounded, Bounds& bounds) {
  if (bounded.point.device == "cpu") return limit_by_host(bounded, bounds);
  // One poller polls the word, several poll the message; the faster of the two is the floor.
  const auto word = bounds.limit("word_round_trip_ns"), message = bounds.limit("lone_message_ns");
  bounds.time(message && (!word || *message < *word) ? "lone_message_ns" : "word_round_trip_ns");
  // With flags, only the used units cross the bus, each with its flag.
  const double bytes = chose(bounded, "notify", "flags")
                           ? static_cast<double>(units_of(bounded.larger()) * sizeof(Unit))
                           : bounded.slot();
  bounds.bytes(chose(bounded, "slots", "vram") ? "copy_engine_both_bytes_per_second" : "sm_echo_bytes_per_second",
               bytes);
}

const QueueRegistration registered(
    "gpu_ring", {.description = "rings in pinned host memory or the GPU's memory, served by one resident kernel",
                 .guarantee = {.order = "per lane"},
                 .resident = true,
                 .axes = ring_axes().list(),
                 .make = make_queue<GpuRingQueue>,
                 .why_unsupported = why_unsupported_lanes,
                 .bounds = bound,
                 .search = {{"lanes", {"0", "16", "32", "64", "96"}},
                            {"pollers", {"0", "1", "2", "4"}},
                            {"block", {"128", "256", "512", "1024"}}}});

}  // namespace
}  // namespace feedrate

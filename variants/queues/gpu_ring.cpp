#include <fmt/format.h>

#include "common/error.hpp"
#include "variants/queues/ring_memory.hpp"

namespace feedrate {
namespace {

/// Takes a producer's lanes in turn, a batch each; a full lane is passed over.
class LanesIn final : public Producer {
 public:
  LanesIn(std::span<const RingView> lanes, std::size_t most) {
    for (const RingView& lane : lanes) lanes_.emplace_back(lane, most);
  }
  Messages reserve(std::size_t n) override {
    for (std::size_t tried = 0; tried < lanes_.size(); ++tried) {
      const Messages room = lanes_[at_].reserve(n);
      if (!room.empty()) return room;
      at_ = (at_ + 1) % lanes_.size();
    }
    return {};
  }
  void publish(std::size_t n) override {
    lanes_[at_].publish(n);
    at_ = (at_ + 1) % lanes_.size();
  }

 private:
  std::vector<RingProducer> lanes_;
  std::size_t at_ = 0;
};

class LanesOut final : public Collector {
 public:
  LanesOut(std::span<const RingView> lanes, std::size_t most) {
    for (const RingView& lane : lanes) lanes_.emplace_back(lane, most);
  }
  ConstMessages poll(std::size_t n) override {
    for (std::size_t tried = 0; tried < lanes_.size(); ++tried) {
      at_ = (at_ + 1) % lanes_.size();
      const ConstMessages results = lanes_[at_].poll(n);
      if (!results.empty()) return results;
    }
    return {};
  }
  void release(std::size_t n) override { lanes_[at_].release(n); }

 private:
  std::vector<RingCollector> lanes_;
  std::size_t at_ = 0;
};

/// Rings are flagged when their messages are small and go one at a time: the shortest way for a lone message. Batches
/// share a cursor's round trip and fence among them, and are better off without the copies.
bool worth_flagging(const QueueConfig& config) {
  constexpr std::size_t kLargestStride = 144;
  return config.point.batch == 1 && std::max(config.in_stride(), config.out_stride()) <= kLargestStride;
}

/// Rings in pinned host memory and one resident kernel that serves them: after the start no CUDA call is made for a
/// message, the GPU pulls messages over the bus and writes results back. Each ring is a lane with a block of its own;
/// a producer spreads its batches over its lanes, so order is kept within a lane only.
class GpuRing final : public Queue {
 public:
  explicit GpuRing(const QueueConfig& config)
      : config_(config),
        lanes_per_producer_(config.point.lanes / config.point.producers),
        views_memory_(config.device.allocate_host(config.point.lanes * sizeof(RingView), HostMemory::pinned)),
        views_(reinterpret_cast<RingView*>(views_memory_.data()), config.point.lanes) {
    const std::size_t share = (ring_capacity(config.point) + lanes_per_producer_ - 1) / lanes_per_producer_;
    for (RingView& view : views_) {
      rings_.emplace_back(config.device, HostMemory::pinned, config.in_stride(), config.out_stride(),
                          std::max(share, std::min(config.point.batch, ring_capacity(config.point))),
                          worth_flagging(config));
      view = rings_.back().view();
    }
  }
  ~GpuRing() override { GpuRing::stop(false); }

  std::unique_ptr<Producer> producer(unsigned index) override {
    return std::make_unique<LanesIn>(lanes_of(index), config_.point.batch);
  }
  std::unique_ptr<Collector> collector(unsigned index) override {
    return std::make_unique<LanesOut>(lanes_of(index), config_.point.batch);
  }

  void start() override { resident_ = config_.device.start_resident(config_.workload, views_, config_.point.block); }
  void stop(bool drain) override {
    if (!resident_) return;
    for (const RingView& view : views_) request_stop(view, drain ? kStopWhenDone : kStopNow);
    resident_.reset();
  }
  void check() override {
    if (resident_ && !resident_->running()) throw Failure("gpu_ring: the resident kernel ended by itself");
  }
  Cost cost() const override {
    if (config_.device.kind() == "cpu") return {.host_threads = resident_ ? resident_->host_threads() : 0};
    return {.sms = std::min(config_.point.lanes, config_.device.info().processors)};
  }

 private:
  std::span<const RingView> lanes_of(unsigned producer) const {
    return views_.subspan(std::size_t{producer} * lanes_per_producer_, lanes_per_producer_);
  }

  QueueConfig config_;
  std::size_t lanes_per_producer_;
  Buffer views_memory_;  // the kernel reads the views, so they lie in pinned memory
  std::span<RingView> views_;
  std::vector<RingMemory> rings_;
  std::unique_ptr<Resident> resident_;  // destroyed first
};

std::string fit_lanes(Point& point, Device& device, const Workload& workload) {
  constexpr unsigned kMostByDefault = 16;
  if (point.lanes == 0) {
    // A lane works on one batch at a time, so more lanes than batches in flight would only poll the bus.
    const auto batches = static_cast<unsigned>(std::min<std::size_t>(kMostByDefault, point.window / point.batch));
    const unsigned wanted = point.device == "cuda" ? std::max(1u, kMostByDefault / point.producers) : 1;
    point.lanes = std::max(1u, std::min(wanted, batches)) * point.producers;
  }
  if (point.lanes % point.producers != 0) {
    return fmt::format("{} lanes can't be shared evenly by {} producers", point.lanes, point.producers);
  }
  // A block that does not fit waits for ever for the others to end.
  const unsigned most = device.most_rings(workload, point.block);
  if (point.lanes <= most) return "";
  return fmt::format("{} lanes of {} threads can't be resident at once; this device holds {}", point.lanes, point.block,
                     most);
}

const QueueRegistration registered("gpu_ring",
                                   {.description = "rings in pinned host memory, served by one resident kernel",
                                    .delivery = "exactly once in process",
                                    .order = "per lane",
                                    .uses_lanes = true,
                                    .make = make_queue<GpuRing>,
                                    .fit = fit_lanes});

}  // namespace
}  // namespace feedrate

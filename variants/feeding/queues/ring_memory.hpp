#pragma once
#include <algorithm>
#include <bit>

#include "variants/feeding/queue.hpp"

namespace feedrate {

/// Owns one ring's cursors and slots, in a kind of host memory that the serving side can access.
class RingMemory {
 public:
  RingMemory(Device& device, HostMemory memory, std::size_t in_stride, std::size_t out_stride, std::size_t capacity)
      : capacity_(std::bit_ceil(std::max<std::size_t>(capacity, 1))),
        cursors_(device.allocate_host(sizeof(RingCursors), memory)),
        in_(device.allocate_host(capacity_ * in_stride, memory)),
        out_(device.allocate_host(capacity_ * out_stride, memory)) {
    auto* cursors = reinterpret_cast<RingCursors*>(cursors_.data());
    view_ = ring_at(*cursors, in_.data(), out_.data(), in_stride, out_stride, capacity_);
  }
  RingView view() const { return view_; }

 private:
  std::size_t capacity_;
  Buffer cursors_, in_, out_;
  RingView view_;
};

inline std::size_t ring_capacity(const Point& point) { return point.capacity != 0 ? point.capacity : point.window; }

/// The load generator's ends of a single ring.
struct RingIn final : Producer {
  explicit RingIn(RingView view) : ring(view) {}
  Messages reserve(std::size_t n) override { return ring.reserve(n); }
  void publish(std::size_t n) override { ring.publish(n); }
  RingProducer ring;
};
struct RingOut final : Collector {
  explicit RingOut(RingView view) : ring(view) {}
  ConstMessages poll(std::size_t n) override { return ring.poll(n); }
  void release(std::size_t n) override { ring.release(n); }
  RingCollector ring;
};

}  // namespace feedrate

#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "common/device/device.hpp"

namespace feedrate {

/// Inputs of a kernel in rotation, in device memory. Consecutive launches get different inputs, and an input has left
/// the cache before it is used again.
class Rotation {
 public:
  /// Creates enough copies of `bytes` to exceed `times` times the device's cache, at least two.
  Rotation(Device& device, std::size_t bytes, unsigned times = 2)
      : Rotation(device, bytes,
                 std::max<std::size_t>(2, times * device.info().cache / std::max<std::size_t>(bytes, 1) + 1), 0) {}
  /// Creates this many copies.
  static Rotation of(Device& device, std::size_t bytes, std::size_t copies) { return {device, bytes, copies, 0}; }

  std::size_t size() const { return buffers_.size(); }
  /// The input for the launch with this number.
  const Buffer& at(std::size_t turn) const { return buffers_[turn % buffers_.size()]; }

 private:
  Rotation(Device& device, std::size_t bytes, std::size_t copies, int) {
    for (std::size_t i = 0; i < copies; ++i) buffers_.push_back(device.allocate_device(bytes));
  }
  std::vector<Buffer> buffers_;
};

/// Buffer of twice the device's cache size that is written between two launches, so that the next launch finds none of
/// its data in the cache.
class CacheFlush {
 public:
  explicit CacheFlush(Device& device)
      : buffer_(device.allocate_device(std::max<std::size_t>(2 * device.info().cache, 1), Fresh::as_is)) {}
  void queue(Stream& stream) { stream.fill(buffer_.data(), ++value_, buffer_.size()); }

 private:
  Buffer buffer_;
  unsigned char value_ = 0;
};

}  // namespace feedrate

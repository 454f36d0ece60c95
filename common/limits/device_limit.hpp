#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "common/device/device.hpp"
#include "common/limits/limit.hpp"
#include "common/registry.hpp"

namespace feedrate {

/// Resources shared by the measurements of one round: the device, and large host and device buffers, which are
/// allocated at first use.
class LimitProbe {
 public:
  static constexpr std::size_t kLarge = std::size_t{64}
                                        << 20;  ///< bytes per buffer; more than the L2 of an A100 or H100

  explicit LimitProbe(Device& device) : device_(device) {}
  Device& device() { return device_; }
  /// Pinned host buffers: the device reads 0 and writes 1.
  const Buffer& host(std::size_t which) {
    auto& buffer = host_.at(which);
    if (!buffer) buffer.emplace(device_.allocate_host(kLarge, HostMemory::pinned));
    return *buffer;
  }
  /// Device buffers.
  const Buffer& near(std::size_t which) {
    auto& buffer = near_.at(which);
    if (!buffer) buffer.emplace(device_.allocate_device(kLarge));
    return *buffer;
  }

 private:
  Device& device_;
  std::array<std::optional<Buffer>, 2> host_, near_;
};

/// A limit of the host or of a GPU, measured in every run. One file registers it; rows, the catalogue, bounds and
/// reports then include it.
struct DeviceLimit {
  Quantity quantity;
  std::string method;  ///< how it is measured
  std::function<Scope(const DeviceInfo&)> scope;
  std::function<double(LimitProbe&)> measure;
  /// Whether a device of this kind has the limit.
  std::function<bool(const DeviceInfo&)> applies = [](const DeviceInfo&) { return true; };
  /// Set for a rate between the host and a GPU if the sum over all GPUs, measured concurrently, is also a limit.
  bool of_all_gpus = false;
};
using DeviceLimits = Registry<DeviceLimit>;
using DeviceLimitRegistration = Registration<DeviceLimit>;

inline constexpr auto kNs = Quantity::nanoseconds;
inline constexpr auto kBytesPerSecond = Quantity::bytes_per_second;
inline constexpr auto kPerSecond = Quantity::operations_per_second;

inline Scope on_host(const DeviceInfo&) { return {}; }
inline Scope on_gpu(const DeviceInfo& device) { return gpu_scope(device.index); }
inline Scope on_bus(const DeviceInfo& device) { return bus_scope(device.index); }
inline bool has_gpu(const DeviceInfo& device) { return device.kind == "cuda"; }

}  // namespace feedrate

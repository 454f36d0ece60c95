#pragma once
#include <cstdint>

namespace feedrate {

/// What a device's clock shows at a moment of the host's.
struct ClockReading {
  std::uint64_t host_ns = 0, device_ns = 0;
  double within_ns = 0;         ///< the moment is known so well
  double events_within_ns = 0;  ///< and the times of events, beside the device's clock
};

/// From a device's clock to the host's, by a straight line through two readings.
class ClockMap {
 public:
  ClockMap() = default;
  ClockMap(const ClockReading& first, const ClockReading& second) : first_(first), second_(second) {
    const auto host = static_cast<double>(second.host_ns - first.host_ns);
    const auto device = static_cast<double>(second.device_ns - first.device_ns);
    if (host > 0 && device > 0) pace_ = host / device;
  }
  std::uint64_t to_host(std::uint64_t device_ns) const {
    const auto since = static_cast<double>(static_cast<std::int64_t>(device_ns - first_.device_ns));
    return first_.host_ns + static_cast<std::uint64_t>(static_cast<std::int64_t>(since * pace_));
  }
  /// How much faster the device's clock goes than the host's, in parts per million; right within `drift_within_ppm`.
  double drift_ppm() const { return (1 / pace_ - 1) * 1e6; }
  double drift_within_ppm() const {
    const auto apart = static_cast<double>(second_.host_ns - first_.host_ns);
    return apart > 0 ? (first_.within_ns + second_.within_ns) / apart * 1e6 : 0;
  }
  /// Between the readings every time is right within this.
  double within_ns() const { return first_.within_ns > second_.within_ns ? first_.within_ns : second_.within_ns; }
  /// The times of events are those since the first reading, and may be off by so much besides.
  double events_within_ns() const { return first_.events_within_ns; }

 private:
  ClockReading first_, second_;
  double pace_ = 1;
};

}  // namespace feedrate

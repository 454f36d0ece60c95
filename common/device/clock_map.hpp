#pragma once
#include <cstdint>

namespace feedrate {

/// A reading of a device's clock at a known host time.
struct ClockReading {
  std::uint64_t host_ns = 0, device_ns = 0;
  double within_ns = 0;         ///< uncertainty of the host time
  double events_within_ns = 0;  ///< uncertainty of event times relative to the device's clock
};

/// Maps a device's clock to the host's by linear interpolation through two readings.
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
  /// How much faster the device's clock runs than the host's, in parts per million; accurate to within
  /// `drift_within_ppm`.
  double drift_ppm() const { return (1 / pace_ - 1) * 1e6; }
  double drift_within_ppm() const {
    const auto apart = static_cast<double>(second_.host_ns - first_.host_ns);
    return apart > 0 ? (first_.within_ns + second_.within_ns) / apart * 1e6 : 0;
  }
  /// Uncertainty of every mapped time between the two readings.
  double within_ns() const { return first_.within_ns > second_.within_ns ? first_.within_ns : second_.within_ns; }
  /// Additional uncertainty of event times, which are measured from the first reading.
  double events_within_ns() const { return first_.events_within_ns; }

 private:
  ClockReading first_, second_;
  double pace_ = 1;
};

}  // namespace feedrate

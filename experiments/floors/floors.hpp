#pragma once
#include <functional>
#include <string>
#include <vector>

#include "common/device/device.hpp"
#include "common/redis/settings.hpp"

namespace feedrate {

/// One thing that this machine can't do better, measured bare: no queue, no headers, no bookkeeping.
struct Floor {
  std::string name;  ///< ends in its unit: _ns (median), _bytes_per_second (each way), _per_second
  double value = 0;
  std::string unit;
  std::string description;
  std::string started;
  double seconds = 0;
};

/// Collects floors, timing how long each took to measure.
class FloorList {
 public:
  void add(std::string name, std::string unit, std::string description, const std::function<double()>& measure);
  std::vector<Floor> take() { return std::move(floors_); }

 private:
  std::vector<Floor> floors_;
};

/// The median of `n` timings of `body`, after a tenth as many untimed, in nanoseconds.
double median_ns(unsigned n, const std::function<void()>& body);
/// How often `body` runs in a second, measured over at least `seconds`.
double per_second(double seconds, const std::function<void()>& body);

std::vector<Floor> measure_device_floors(Device&);
std::vector<Floor> measure_redis_floors(const RedisSettings&);
/// In builds with CUDA: launch, copy and bus floors of the current GPU.
void add_cuda_floors(FloorList&, Device&);

}  // namespace feedrate

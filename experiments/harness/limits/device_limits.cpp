#include "experiments/harness/limits/device_limits.hpp"

#include "common/limits/device_limit.hpp"

namespace feedrate {

void add_device_limits(LimitList& limits, Device& device) {
  device.use_in_this_thread();  // another device may have been used since the last round
  const DeviceInfo info = device.info();
  LimitProbe probe(device);
  for (const auto& [name, limit] : DeviceLimits::instance().entries()) {
    if (!limit.applies(info)) continue;
    limits.add({name, limit.quantity, limit.scope(info), limit.method}, [&] { return limit.measure(probe); });
  }
}

void name_device_limits(LimitList& limits) {
  for (const auto& [name, limit] : DeviceLimits::instance().entries()) {
    limits.add({name, limit.quantity, limit.scope({}), limit.method}, {});
  }
}

}  // namespace feedrate

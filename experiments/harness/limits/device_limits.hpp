#pragma once
#include "common/device/device.hpp"
#include "common/limits/limit_list.hpp"

namespace feedrate {

/// Reads every registered limit that applies to this device.
void add_device_limits(LimitList&, Device&);
/// Adds the names of all registered limits, regardless of this machine.
void name_device_limits(LimitList&);

/// Reads the limits marked `of_all_gpus`, for one GPU at a time and for all GPUs together. Opens each GPU; if one
/// cannot be used, skips these limits with a warning.
void add_limits_of_all_gpus(LimitList&, unsigned gpus);

/// Scheduling delay of spinning threads: the 99th percentile of the delay with which a polling thread sees an event,
/// over threads on all cores but two, within 20 ms. Timer ticks and the hypervisor occasionally suspend a thread, so
/// under open load no queue with as many threads at its ends has a shorter tail. Readings differ by a factor of up to
/// four.
double host_pause_p99_ns();

}  // namespace feedrate

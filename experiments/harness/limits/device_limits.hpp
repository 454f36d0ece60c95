#pragma once
#include "common/device/device.hpp"
#include "common/limits/limit_list.hpp"

namespace feedrate {

/// Reads every registered limit that applies to this device.
void add_device_limits(LimitList&, Device&);
/// Adds the names of all registered limits, regardless of this machine.
void name_device_limits(LimitList&);

/// Reads the limits marked `of_all_gpus`, for one GPU at a time and for all GPUs together. Opens each GPU; if one can't
/// be used, skips these limits with a warning.
void add_limits_of_all_gpus(LimitList&, unsigned gpus);

}  // namespace feedrate

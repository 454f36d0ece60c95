#pragma once
#include "common/device/device.hpp"
#include "common/limits/limit_list.hpp"

namespace feedrate {

/// Reads every registered limit that a device like this has.
void add_device_limits(LimitList&, Device&);
/// Names them all, whatever this machine has.
void name_device_limits(LimitList&);

/// Reads the limits that are `of_all_gpus`: of one GPU at a time, and of all together. Opens each GPU for that; leaves
/// them out, with a warning, if one can't be used.
void add_limits_of_all_gpus(LimitList&, unsigned gpus);

}  // namespace feedrate

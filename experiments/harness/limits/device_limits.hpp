#pragma once
#include "common/device/device.hpp"
#include "common/limits/limit_list.hpp"

namespace feedrate {

/// Reads every registered limit that a device like this has.
void add_device_limits(LimitList&, Device&);
/// Names them all, whatever this machine has.
void name_device_limits(LimitList&);

/// Copies between the host and each of several GPUs, one GPU at a time and all together. Opens each GPU
/// for that; leaves them out, with a warning, if one can't be used.
void add_copies_of_all_gpus(LimitList&, unsigned gpus);

}  // namespace feedrate

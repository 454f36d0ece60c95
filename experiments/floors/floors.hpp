#pragma once
#include "common/device/device.hpp"
#include "common/floor_list.hpp"

namespace feedrate {

/// What every experiment may be bound by: the host's threads and memory, and the GPU's launches, copies and bus.
void add_device_floors(FloorList&, Device&);
/// In builds with CUDA: launch, copy and bus floors of the current GPU.
void add_cuda_floors(FloorList&, Device&);

}  // namespace feedrate

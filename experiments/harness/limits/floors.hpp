#pragma once
#include "common/device/device.hpp"
#include "common/floor_list.hpp"

namespace feedrate {

/// How late a thread that does nothing but look comes to what happens at any moment: the 99th percentile, over threads
/// on all cores but two, within 50 ms. Timer ticks and the hypervisor take it away now and then, so under open load no
/// queue whose ends are so many threads has a shorter tail. Readings differ by a factor of up to four.
double host_pause_p99_ns();

/// What every experiment may be bound by: the host's threads and memory, and the GPU's launches, copies and bus.
void add_device_floors(FloorList&, Device&);
/// In builds with CUDA: launch, copy and bus floors of the current GPU.
void add_cuda_floors(FloorList&, Device&);

}  // namespace feedrate

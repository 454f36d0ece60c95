#pragma once
#include <functional>
#include <map>
#include <string>

namespace feedrate::kernels {

/// Bytes that moved while a kernel ran, from the GPU's counters: `dram_read_bytes`, `dram_write_bytes`, `sm_l2_bytes`
/// between the SMs and the L2 cache, and `l2_bytes` of all requests to that cache, which include those between its two
/// halves. `run` must run the kernel on the current device and wait for its end; it is called once or more, because not
/// all counters can be read at once. Throws Failure if the counters cannot be read, for example because the driver
/// reserves them for root.
std::map<std::string, double> read_counters(const std::function<void()>& run);

}  // namespace feedrate::kernels

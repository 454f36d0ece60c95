#pragma once
#include <cstdint>

#include "common/message/message.hpp"
#ifndef __CUDACC_RTC__  // which knows no host headers
#include "common/clock.hpp"
#endif

namespace feedrate {

/// Nanoseconds of the clock of whoever runs this: `globaltimer` on the GPU, the host's elsewhere (so the CPU device's
/// clock is the host's). It goes on at the same pace in all blocks of a GPU.
FEEDRATE_HD inline std::uint64_t device_clock_ns() {
#ifdef __CUDA_ARCH__
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
#else
  return now_ns();
#endif
}

}  // namespace feedrate

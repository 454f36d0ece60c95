#pragma once
#include <cstdint>

#include "common/message/message.hpp"
#ifndef __CUDACC_RTC__  // the run-time compiler has no host headers
#include "common/clock.hpp"
#endif

namespace feedrate {

/// Nanoseconds of the local clock: `globaltimer` on the GPU, the host's clock elsewhere (so the CPU device's clock is
/// the host's). All blocks of a GPU share one clock.
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

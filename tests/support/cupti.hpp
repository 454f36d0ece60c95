#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

namespace feedrate::test {

inline constexpr auto kTooLate = "other tests had the GPU before CUPTI, which then sees no calls; run these alone";

/// Whether this process already had the GPU when the first test asked this.
inline bool too_late_for_cupti() {
  static const bool late = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &entry, 12000, cudaEnableDefault, &found);
    unsigned flags = 0;
    int active = 0;
    if (entry != nullptr) reinterpret_cast<decltype(&cuDevicePrimaryCtxGetState)>(entry)(0, &flags, &active);
    return active != 0;
  }();
  return late;
}

}  // namespace feedrate::test

#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

namespace feedrate::test {

inline constexpr auto kTooLate =
    "an earlier test used the GPU before CUPTI, which then sees no calls; run these tests alone";

/// Whether this process had already used the GPU when this function was first called.
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

#pragma once
#include <cuda_runtime.h>

#include <string>

#include "common/error.hpp"

namespace feedrate {

/// Throws Failure unless the CUDA call `what` succeeded.
inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // otherwise the next check of a launch would report this error
    throw Failure(std::string(what) + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error));
  }
}

/// Returns why no GPU can be used here; empty if one can.
inline std::string why_no_gpu() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) {
    // Without any driver the runtime reports driver version 0 and calls it insufficient.
    int version = 0;
    if (cudaDriverGetVersion(&version) == cudaSuccess && version == 0) return "no NVIDIA driver on this machine";
  }
  if (error != cudaSuccess) return std::string("no usable GPU: ") + cudaGetErrorString(error);
  return count == 0 ? "no GPU on this machine" : "";
}

}  // namespace feedrate

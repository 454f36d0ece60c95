#pragma once
#include <cuda_runtime.h>

#include <string>

#include "common/error.hpp"

namespace feedrate {

/// Throws Failure unless a CUDA call succeeded.
inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw Failure(std::string(what) + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error));
  }
}

}  // namespace feedrate

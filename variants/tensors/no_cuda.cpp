#include "common/error.hpp"
#include "variants/tensors/memory.hpp"

/// Stands in for cuda_memory.cu in builds without CUDA.
namespace feedrate::tensors {

std::unique_ptr<ChunkMemory> vmm_memory(const std::string& device) {
  throw BadInput("--device", device, "cpu (this build has no CUDA)");
}

}  // namespace feedrate::tensors

#include "common/error.hpp"
#include "variants/tensors/memory.hpp"

/// Stands in for the cuda_*.cu in builds without CUDA.
namespace feedrate::tensors {

std::vector<std::string> gpu_ways() { return {}; }

std::unique_ptr<ChunkMemory> gpu_memory(const std::string& /*way*/, const std::string& device,
                                        const std::string& /*user*/) {
  throw BadInput("--device", device, "cpu (this build has no CUDA)");
}

}  // namespace feedrate::tensors

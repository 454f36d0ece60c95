#include "common/error.hpp"
#include "feedrate/tensors.hpp"
#include "libraries/tensors/memory.hpp"

/// Replaces the cuda_*.cu files in builds without CUDA.
namespace feedrate::tensors {

std::vector<std::string> gpu_ways() { return {}; }

std::unique_ptr<ChunkMemory> gpu_memory(const std::string& /*way*/, const std::string& device,
                                        const std::string& /*user*/) {
  throw BadInput("--device", device, "cpu (this build has no CUDA)");
}

struct SharedEvent::State {};

SharedEvent SharedEvent::create(int gpu) {
  throw BadInput("gpu", std::to_string(gpu), "none (this build has no CUDA)");
}
SharedEvent SharedEvent::open(std::string_view /*handle*/, int gpu) { return create(gpu); }
std::string SharedEvent::handle() const { return {}; }
void SharedEvent::record(void* /*stream*/) const {}
void SharedEvent::wait_on(void* /*stream*/) const {}
bool SharedEvent::done() const { return true; }

}  // namespace feedrate::tensors

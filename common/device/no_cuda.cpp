#include "common/device/device.hpp"
#include "common/error.hpp"

/// Replaces cuda_device.cu in builds without CUDA.
namespace feedrate {

std::string cuda_unavailable() { return "this build has no CUDA"; }
std::unique_ptr<Device> open_cuda_device(unsigned) {
  throw BadInput("--device", "cuda", "cpu (" + cuda_unavailable() + ")");
}
void allow_shared_memory(const void*, unsigned) {}
unsigned gpu_count() { return 0; }
DeviceInfo describe_gpu(unsigned) { throw BadInput("--device", "cuda", "cpu (" + cuda_unavailable() + ")"); }

}  // namespace feedrate

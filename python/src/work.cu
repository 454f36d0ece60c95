#include "work.hpp"

#include <feedrate/kernel.hpp>

namespace feedrate::python {
namespace {

struct Echo {
  static FEEDRATE_HD bool accepts(std::size_t) { return true; }
  static FEEDRATE_HD std::size_t result_bytes(std::size_t bytes) { return bytes; }
  template <class Group>
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    const auto pieces = static_cast<unsigned>((bytes + sizeof(Vec16) - 1) / sizeof(Vec16));
    for (unsigned i = group.rank(); i < pieces; i += group.size()) out[i] = in[i];
    return 0;
  }
};

}  // namespace

std::unique_ptr<Kernel> make_echo() { return std::make_unique<KernelOf<Echo>>(); }

std::vector<GpuInfo> gpus() {
  std::vector<GpuInfo> found;
#ifdef __CUDACC__
  if (!cuda_unavailable().empty()) return found;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return found;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp told{};
    if (cudaGetDeviceProperties(&told, i) != cudaSuccess) continue;
    found.push_back({i, told.name, told.totalGlobalMem, told.multiProcessorCount,
                     std::to_string(told.major) + "." + std::to_string(told.minor)});
  }
#endif
  return found;
}

}  // namespace feedrate::python

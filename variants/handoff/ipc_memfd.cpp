#include "variants/handoff/ipc.hpp"

namespace feedrate::handoff {
namespace {

struct Memfd {
  static std::unique_ptr<tensors::ChunkMemory> memory(const Setting&, unsigned) { return tensors::memfd_memory(); }
  static std::string why_unsupported(const Setting& setting) {
    return setting.device == "cpu" ? ""
                                   : "it shares host memory; ipc_vmm, ipc_pool and ipc_legacy share a GPU's memory";
  }
};
const WayRegistration registered("ipc_memfd",
                                 ipc_entry<Memfd>("host memory that both processes map, for the CPU device"));

}  // namespace
}  // namespace feedrate::handoff

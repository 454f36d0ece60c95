#include "variants/handoff/ipc.hpp"

namespace feedrate::handoff {
namespace {

struct Memfd {
  static std::unique_ptr<tensors::ChunkMemory> memory(const Setting&, unsigned) { return tensors::memfd_memory(); }
  static std::string refuse(const Setting& setting) {
    return setting.device == "cpu" ? "" : "it shares host memory; a GPU's is shared by ipc_vmm, ipc_pool, ipc_legacy";
  }
};
const WayRegistration registered("ipc_memfd", ipc_entry<Memfd>("host memory that both map, where the device is a CPU"));

}  // namespace
}  // namespace feedrate::handoff

#include "variants/handoff/ipc.hpp"

namespace feedrate::handoff {
namespace {

constexpr char kVmm[] = "vmm";
const WayRegistration registered(
    "ipc_vmm", ipc_entry<GpuIpc<kVmm>>("a GPU's memory by virtual memory management, with one descriptor per tensor"));

}  // namespace
}  // namespace feedrate::handoff

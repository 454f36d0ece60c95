#include "variants/handoff/ipc.hpp"

namespace feedrate::handoff {
namespace {

constexpr char kLegacy[] = "legacy";
const WayRegistration registered("ipc_legacy",
                                 ipc_entry<GpuIpc<kLegacy>>("a GPU's memory by a handle to its cudaMalloc block"));

}  // namespace
}  // namespace feedrate::handoff

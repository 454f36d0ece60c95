#include "variants/handoff/ipc.hpp"

namespace feedrate::handoff {
namespace {

constexpr char kWay[] = "legacy";
const WayRegistration registered("ipc_legacy",
                                 ipc_entry<GpuIpc<kWay>>("a GPU's memory by a handle of its cudaMalloc block"));

}  // namespace
}  // namespace feedrate::handoff

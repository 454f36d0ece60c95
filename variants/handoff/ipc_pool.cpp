#include "variants/handoff/ipc.hpp"

namespace feedrate::handoff {
namespace {

constexpr char kPool[] = "pool";
const WayRegistration registered(
    "ipc_pool",
    ipc_entry<GpuIpc<kPool>>("a GPU's memory of an exported stream-ordered pool, a handle for each tensor"));

}  // namespace
}  // namespace feedrate::handoff

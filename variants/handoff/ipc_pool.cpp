#include "variants/handoff/ipc.hpp"

namespace feedrate::handoff {
namespace {

constexpr char kPool[] = "pool";
const WayRegistration registered(
    "ipc_pool",
    ipc_entry<GpuIpc<kPool>>("a GPU's memory from an exported stream-ordered pool, with one handle per tensor"));

}  // namespace
}  // namespace feedrate::handoff

#include "variants/feeding/queue.hpp"
#include "variants/handoff/handoff.hpp"

/// Registers members under names that are already taken, in two registries. The executable must report this and exit
/// (tests/CMakeLists.txt).
namespace feedrate {
namespace {
const QueueRegistration queue("null", {.description = "not the null queue", .make = {}});
const handoff::WayRegistration way("shm_copy",
                                   {.description = "not that way", .copies = {}, .exporter = {}, .importer = {}});
}  // namespace
}  // namespace feedrate

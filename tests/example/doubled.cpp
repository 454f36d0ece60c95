#include "variants/feeding/queue.hpp"
#include "variants/handoff/handoff.hpp"

/// Members whose names are taken, in two registries, for an executable that must refuse to start
/// (tests/CMakeLists.txt).
namespace feedrate {
namespace {
const QueueRegistration queue("null", {.description = "not the null queue", .make = {}});
const handoff::WayRegistration way("shm_copy", {.description = "not that way", .copies = {}, .giver = {}, .taker = {}});
}  // namespace
}  // namespace feedrate

#include "variants/queue.hpp"

/// A second queue of one name, for an executable that must refuse to start (tests/CMakeLists.txt).
namespace feedrate {
namespace {
const QueueRegistration registered("null", {.description = "not the null queue", .order = "", .make = {}});
}  // namespace
}  // namespace feedrate

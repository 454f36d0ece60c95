#include "variants/feeding/transfers/bounds.hpp"
#include "variants/feeding/transfers/slots.hpp"

namespace feedrate {
namespace {

constexpr unsigned kBuffers = 2;

/// Ping-pong: while the kernel works on one buffer, the other is emptied and filled. This is the classic method and the
/// minimum for any overlap.
const TransferRegistration registered(
    "double_buffer",
    {.description = "two alternating buffers; one stream each for copies in, kernels and copies out, ordered by events",
     .memory = HostMemory::pinned,
     .depth = [](const Point&) { return kBuffers * SlotTransfer::kQueuedPerSlot; },
     .make = [](const TransferConfig& config) { return std::make_unique<SlotTransfer>(config, kBuffers); },
     .bounds = [](const BoundedPoint& bounded, Bounds& bounds) { limit_by_copies(bounded, bounds); },
     .search = {{"block", {"128", "256", "512", "1024"}}}});

}  // namespace
}  // namespace feedrate

#include "variants/feeding/transfers/bounds.hpp"
#include "variants/feeding/transfers/slots.hpp"

namespace feedrate {
namespace {

struct Options {
  unsigned buffers = 4;
};
const Axes<Options>& own_axes() {
  static const auto kAxes = Axes<Options>().number("buffers", &Options::buffers, {2, 256},
                                                   "buffers in device memory that batches use in turn");
  return kAxes;
}

/// The same as double_buffer with more buffers: with three or more, all three steps can run at once, whichever of them
/// is slow at the moment.
const TransferRegistration registered(
    "ring_buffer",
    {.description = "as double_buffer, with any number of buffers, each with events for ready and free",
     .memory = HostMemory::pinned,
     .axes = own_axes().list(),
     .depth = [](const Point& point) { return own_axes().of(point.own).buffers * SlotTransfer::kQueuedPerSlot; },
     .make =
         [](const TransferConfig& config) {
           return std::make_unique<SlotTransfer>(config, own_axes().of(config.own).buffers);
         },
     .bounds = [](const BoundedPoint& bounded, Bounds& bounds) { limit_by_copies(bounded, bounds); },
     .search = {{"buffers", {"2", "3", "4", "8", "16"}}, {"block", {"128", "256", "512", "1024"}}}});

}  // namespace
}  // namespace feedrate

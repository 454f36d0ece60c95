#include "variants/overlap/streams.hpp"

namespace feedrate {
namespace {

/// A typical first attempt at overlap: two streams and an event for each item, but only one buffer. The producer must
/// wait until the consumer has read the buffer, so the two take turns, and the events add overhead.
const StrategyRegistration registered(
    "two_stream",
    {.description = "stages alternate between two streams, events for each item, one buffer: still no overlap",
     .waits = {kReady, kFree},
     .buffers = [](const Values&) { return 1u; },
     .make = [](const StrategyConfig& config) { return std::make_unique<StagesOnStreams>(config, 2, 1); }});

}  // namespace
}  // namespace feedrate

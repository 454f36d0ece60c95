#include "variants/overlap/streams.hpp"

namespace feedrate {
namespace {

/// What a first try at overlapping looks like: two streams and an event for each item, but one buffer. The producer has
/// to wait until the consumer has read the buffer, so they take turns, and the events come on top.
const StrategyRegistration registered(
    "two_stream",
    {.description = "stages by turns on two streams, events for each item, one buffer: still no overlap",
     .waits = {kReady, kFree},
     .buffers = [](const Values&) { return 1u; },
     .make = [](const StrategyConfig& config) { return std::make_unique<StagesOnStreams>(config, 2, 1); }});

}  // namespace
}  // namespace feedrate

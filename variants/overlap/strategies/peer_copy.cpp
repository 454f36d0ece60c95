#include "variants/overlap/peers.hpp"

namespace feedrate {
namespace {

const StrategyRegistration registered(
    "peer_copy",
    {.description = "stages alternate between two GPUs; items are copied from one GPU's memory to the other's",
     .axes = depth_axes().list(),
     .devices = 2,
     .waits = {kReady, kFree},
     .buffers = [](const Values& own) { return 2 * depth_of(own); },
     .why_unsupported = why_unsupported_peers,
     .make = make_strategy<StagesOnPeers<true>>});

}  // namespace
}  // namespace feedrate

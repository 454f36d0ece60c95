#include "variants/overlap/peers.hpp"

namespace feedrate {
namespace {

const StrategyRegistration registered(
    "peer_load",
    {.description = "stages alternate between two GPUs; a stage's kernel reads items in the other GPU's memory",
     .axes = depth_axes().list(),
     .devices = 2,
     .waits = {kReady, kFree},
     .buffers = [](const Values& own) { return depth_of(own); },
     .why_unsupported = why_unsupported_peers,
     .make = make_strategy<StagesOnPeers<false>>});

}  // namespace
}  // namespace feedrate

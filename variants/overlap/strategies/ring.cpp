#include "variants/overlap/streams.hpp"

namespace feedrate {
namespace {

/// As ping_pong with more buffers, which take up what the stages' times vary.
const StrategyRegistration registered(
    "ring", {.description = "a stream for each stage, as many buffers as wanted between every two of them",
             .axes = depth_axes().list(),
             .waits = {kReady, kFree},
             .buffers = [](const Values& own) { return depth_of(own); },
             .make =
                 [](const StrategyConfig& config) {
                   return std::make_unique<StagesOnStreams>(config, config.pipeline.stages(), depth_of(config.own));
                 }});

}  // namespace
}  // namespace feedrate

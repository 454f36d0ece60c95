#include "variants/overlap/streams.hpp"

namespace feedrate {
namespace {

/// Like ping_pong with more buffers, which absorb variations in the stages' times.
const StrategyRegistration registered(
    "ring", {.description = "one stream per stage, any number of buffers between consecutive stages",
             .axes = depth_axes().list(),
             .waits = {kReady, kFree},
             .buffers = [](const Values& own) { return depth_of(own); },
             .make =
                 [](const StrategyConfig& config) {
                   return std::make_unique<StagesOnStreams>(config, config.pipeline.stages(), depth_of(config.own));
                 }});

}  // namespace
}  // namespace feedrate

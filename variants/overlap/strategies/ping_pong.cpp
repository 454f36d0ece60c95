#include "variants/overlap/streams.hpp"

namespace feedrate {
namespace {

/// The minimum for overlap: while a stage reads one buffer, the previous stage fills the other.
const StrategyRegistration registered("ping_pong",
                                      {.description = "one stream per stage, two buffers between consecutive stages",
                                       .waits = {kReady, kFree},
                                       .buffers = [](const Values&) { return 2u; },
                                       .make =
                                           [](const StrategyConfig& config) {
                                             return std::make_unique<StagesOnStreams>(config, config.pipeline.stages(),
                                                                                      2);
                                           }});

}  // namespace
}  // namespace feedrate

#include "variants/overlap/streams.hpp"

namespace feedrate {
namespace {

/// The least that overlaps: while a stage reads one buffer, the one before it fills the other.
const StrategyRegistration registered("ping_pong",
                                      {.description = "a stream for each stage, two buffers between every two of them",
                                       .waits = {kReady, kFree},
                                       .buffers = [](const Values&) { return 2u; },
                                       .make =
                                           [](const StrategyConfig& config) {
                                             return std::make_unique<StagesOnStreams>(config, config.pipeline.stages(),
                                                                                      2);
                                           }});

}  // namespace
}  // namespace feedrate

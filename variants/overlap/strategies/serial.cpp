#include "variants/overlap/one_stream.hpp"

namespace feedrate {
namespace {

/// Nothing overlaps. All other strategies are compared with this one.
const StrategyRegistration registered("serial",
                                      {.description = "all stages on one stream, one buffer: nothing overlaps",
                                       .buffers = [](const Values&) { return 1u; },
                                       .make = make_strategy<OneStreamForAll<false>>});

}  // namespace
}  // namespace feedrate

#pragma once
#include <nlohmann/json.hpp>

#include "variants/handoff/handoff.hpp"

namespace feedrate::handoff {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Setting, device, bytes, giver_gpu, taker_gpu, copies_to_peer, address, shared,
                                   prefix)

}  // namespace feedrate::handoff

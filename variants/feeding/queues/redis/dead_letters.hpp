#pragma once
#include <memory>

#include "common/service.hpp"
#include "variants/feeding/dead_letters.hpp"

namespace feedrate::redis_queue {

/// The dead letters of all queues with the service's prefix.
std::unique_ptr<DeadLetterBox> dead_letters(const Service&);

}  // namespace feedrate::redis_queue

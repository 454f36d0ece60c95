#pragma once
#include <memory>

#include "variants/feeding/queue.hpp"

namespace feedrate::redis_queue {

/// A Redis queue's keys and workers, for metrics.
std::unique_ptr<QueueWatch> watch(const QueueConfig&);

}  // namespace feedrate::redis_queue

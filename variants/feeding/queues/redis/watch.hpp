#pragma once
#include <memory>

#include "variants/feeding/queue.hpp"

namespace feedrate::redis_queue {

/// Metrics of a Redis queue's keys and workers.
std::unique_ptr<QueueWatch> watch(const QueueConfig&);

}  // namespace feedrate::redis_queue

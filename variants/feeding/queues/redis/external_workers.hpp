#pragma once
#include <memory>

#include "variants/feeding/queue.hpp"

namespace feedrate::redis_queue {

/// Metrics of a Redis queue's keys and workers.
std::unique_ptr<QueueWatch> watch(const QueueConfig&);
/// The dead letters of all queues with the service's prefix.
std::unique_ptr<DeadLetterBox> dead_letters(const Service&);

}  // namespace feedrate::redis_queue

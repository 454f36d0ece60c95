#pragma once
#include "common/floor_list.hpp"
#include "common/redis/settings.hpp"

namespace feedrate::redis_queue {

/// What the server can do at most: round trips, elements and bytes a second, on keys of this run.
void add_redis_floors(FloorList&, const RedisSettings&);

}  // namespace feedrate::redis_queue

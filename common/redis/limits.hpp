#pragma once
#include "common/limits/limit_list.hpp"
#include "common/redis/settings.hpp"

namespace feedrate::redis {

/// What the server can do at most: round trips, elements and bytes a second, on keys of this run.
void add_limits(LimitList&, const RedisSettings&);

}  // namespace feedrate::redis

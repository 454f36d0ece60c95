#pragma once
#include "common/limits/limit_list.hpp"
#include "common/redis/settings.hpp"

namespace feedrate::redis {

/// Measures the limits of the server: round-trip time, elements per second and bytes per second, on keys of this run.
void add_limits(LimitList&, const RedisSettings&);

}  // namespace feedrate::redis

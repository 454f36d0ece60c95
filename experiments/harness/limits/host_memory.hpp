#pragma once
#include "common/floor_list.hpp"

namespace feedrate {

/// How fast host threads write and read memory, in their caches and beyond all: what making messages and comparing
/// results is bound by. One thread, for points with few producers; all cores together, for points with many.
void add_host_memory_floors(FloorList&);

}  // namespace feedrate

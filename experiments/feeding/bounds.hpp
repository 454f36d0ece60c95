#pragma once
#include <string>
#include <utility>
#include <vector>

#include "variants/feeding/bounds.hpp"

namespace feedrate {

/// What a point's figures can't beat, as its members say: by figure. `open`: a rate that was asked for has no bound.
/// `cache_bytes`: of all caches of this host together; 0 if unknown.
std::vector<std::pair<std::string, Expression>> bounds_of(const Point&, const Limits&, const Choices&,
                                                          std::size_t cache_bytes, bool open = false);
}  // namespace feedrate

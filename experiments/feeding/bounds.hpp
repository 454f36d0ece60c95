#pragma once
#include <string>
#include <utility>
#include <vector>

#include "variants/feeding/bounds.hpp"

namespace feedrate {

/// Bounds of a point's figures, by figure, as the point's members define them. `open`: an open load, whose requested
/// rate has no bound. `cache_bytes`: total size of this host's caches; 0 if unknown.
std::vector<std::pair<std::string, Expression>> bounds_of(const Point&, const Limits&, const Choices&,
                                                          std::size_t cache_bytes, bool open = false);
}  // namespace feedrate

#pragma once
#include <map>
#include <string>

#include "experiments/harness/measure/measurement.hpp"
#include "variants/feeding/limits.hpp"

namespace feedrate {

/// The floors that bind this point, as its members name them, and the measured figures as ratios to them, by figure.
/// What follows from floors that were not measured is left out.
std::map<std::string, BoundRatio> bounds_of(const Point&, const Floors&, const Choices&, double messages_per_second,
                                            double p50_ns);

/// The same on a host whose caches hold so many bytes together; 0: not known.
std::map<std::string, BoundRatio> bounds_of(const Point&, const Floors&, const Choices&, double messages_per_second,
                                            double p50_ns, std::size_t cache_bytes);

}  // namespace feedrate

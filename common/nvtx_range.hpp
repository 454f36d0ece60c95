#pragma once

#include "features.hpp"

/// NVTX ranges in the domain `feedrate`. They cost a few nanoseconds if no tool is attached, and nothing in builds
/// without NVTX.
#ifdef FEEDRATE_NVTX
#include <nvtx3/nvtx3.hpp>
namespace feedrate {
struct TraceDomain {
  static constexpr char const* name{"feedrate"};
};
using NvtxRange = nvtx3::scoped_range_in<TraceDomain>;
}  // namespace feedrate
#else
#include <string>
namespace feedrate {
struct NvtxRange {
  explicit NvtxRange(const char*) {}
  explicit NvtxRange(const std::string&) {}
};
}  // namespace feedrate
#endif

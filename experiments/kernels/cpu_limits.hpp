#pragma once
#include "common/limits/limit_list.hpp"

namespace feedrate::kernels {

inline constexpr auto kCpuFma = "cpu_fma_f32_operations_per_second";
inline constexpr auto kCpuCoreFma = "cpu_core_fma_f32_operations_per_second";

/// Adds the rates of multiply-adds of all cores together, and of one core.
void add_cpu_limits(LimitList&);

}  // namespace feedrate::kernels

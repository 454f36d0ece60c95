#pragma once
#include <cstddef>

namespace feedrate::tensors {

inline constexpr std::size_t kMi = std::size_t{1} << 20;

}  // namespace feedrate::tensors

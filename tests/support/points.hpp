#pragma once
#include <string>
#include <type_traits>

#include "variants/feeding/point.hpp"

namespace feedrate::test {

/// Sets an axis that belongs to a member of the point, such as its queue or transfer.
template <class V>
void set(Point& point, const std::string& axis, const V& value) {
  if constexpr (std::is_floating_point_v<V>) {
    point.own[axis] = static_cast<double>(value);
  } else if constexpr (std::is_arithmetic_v<V>) {
    point.own[axis] = static_cast<std::uint64_t>(value);
  } else {
    point.own[axis] = std::string(value);
  }
}

}  // namespace feedrate::test

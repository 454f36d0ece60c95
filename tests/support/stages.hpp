#pragma once
#include <numeric>

#include "tests/support/cells.hpp"

namespace feedrate::test {

inline double sum_of_means(const Json& stages) {
  return std::accumulate(stages.begin(), stages.end(), 0.0,
                         [](double sum, const Json& stage) { return sum + stage["mean"].get<double>(); });
}

/// Names of the stages that a row has, in the order in which a message passes them.
inline std::vector<std::string> names_of(const Json& stages) {
  std::vector<std::string> names;
  for (const char* name : kStageNames) {
    if (stages.contains(name)) names.emplace_back(name);
  }
  return names;
}

/// A point with one message in flight.
inline Point lone(const std::string& queue, const std::string& device, const std::string& transfer = "pinned") {
  Point point;
  point.queue = queue;
  point.transfer = transfer;
  point.device = device;
  point.window = 1;
  return point;
}

}  // namespace feedrate::test

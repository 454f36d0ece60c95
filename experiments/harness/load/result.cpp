#include "experiments/harness/load/result.hpp"

#include <algorithm>

#include "experiments/harness/measure/statistics.hpp"

namespace feedrate {

Backlog backlog_of(std::span<const double> readings, double seconds) {
  Backlog backlog;
  if (readings.empty() || seconds <= 0) return backlog;
  const std::size_t tenth = std::max<std::size_t>(1, readings.size() / 10);
  backlog.begin = trend_of(readings.first(tenth)).mean;
  backlog.end = trend_of(readings.last(tenth)).mean;
  backlog.most = *std::max_element(readings.begin(), readings.end());
  backlog.per_second = trend_of(readings).slope * static_cast<double>(readings.size()) / seconds;
  return backlog;
}

}  // namespace feedrate

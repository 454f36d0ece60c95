#pragma once
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "common/limits/limit.hpp"

namespace feedrate {

/// Collects limits. They are measured in rounds, with one reading of each limit per round: a machine's state changes
/// during a run, and later rounds show how much the limits change. Every round adds the same limits.
class LimitList {
 public:
  /// `measures`: false to list the limits without measuring them, for the catalogue.
  explicit LimitList(bool measures = true) : measures_(measures) {}
  void begin_round() { ++round_; }
  /// Reads a limit, once per round. If `measure` throws Failure, the limit is left out. A warning says so, once per
  /// cause: many limits may need the same program.
  void add(Limit limit, const std::function<double()>& measure);
  bool measures() const { return measures_; }
  const std::vector<Limit>& limits() const { return limits_; }

 private:
  bool measures_;
  unsigned round_ = 1;
  std::vector<Limit> limits_;
  std::vector<unsigned> read_in_;  // indexed by limit: the round of its last reading
  std::set<std::string> causes_;   // of failures that have been reported
};

/// Time of one reading of a rate, in seconds. Five readings together take as long as a single low-noise reading.
inline constexpr double kReadingSeconds = 0.02;

/// Maximum time of a reading that involves two threads or processes, in seconds: if other threads occupy the cores,
/// each exchange waits for the scheduler.
inline constexpr double kLongestReadingSeconds = 5 * kReadingSeconds;

/// The median of `n` timings of `body` in nanoseconds, after `n` / 10 untimed calls. Stops after `longest_seconds`,
/// once it has at least ten timings.
double median_ns(unsigned n, const std::function<void()>& body,
                 double longest_seconds = std::numeric_limits<double>::infinity());
/// Calls of `body` per second, measured over at least `seconds`.
double per_second(double seconds, const std::function<void()>& body);

}  // namespace feedrate

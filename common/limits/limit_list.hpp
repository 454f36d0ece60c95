#pragma once
#include <functional>
#include <limits>
#include <vector>

#include "common/limits/limit.hpp"

namespace feedrate {

/// Collects limits. They are read in rounds, one reading of each per round, because a machine's state changes: further
/// rounds during a run say by how much. Every round adds the same limits.
class LimitList {
 public:
  /// `measures` false: limits are only named, for the catalogue.
  explicit LimitList(bool measures = true) : measures_(measures) {}
  void begin_round() { ++round_; }
  /// Reads a limit, once per round. One whose measurement throws Failure is left out, with a warning.
  void add(Limit limit, const std::function<double()>& measure);
  bool measures() const { return measures_; }
  const std::vector<Limit>& limits() const { return limits_; }

 private:
  bool measures_;
  unsigned round_ = 1;
  std::vector<Limit> limits_;
  std::vector<unsigned> read_in_;  // the round in which each was last read
};

/// The time of one reading of a rate. Five take as long as a single one that is long enough to show little noise.
inline constexpr double kReadingSeconds = 0.02;

/// The longest time of a reading by two threads or processes: if others have the cores, each turn waits for the
/// scheduler.
inline constexpr double kLongestReadingSeconds = 5 * kReadingSeconds;

/// The median of `n` timings of `body`, after a tenth as many untimed, in nanoseconds. After `longest_seconds` it makes
/// do with the timings that it has, ten at least.
double median_ns(unsigned n, const std::function<void()>& body,
                 double longest_seconds = std::numeric_limits<double>::infinity());
/// How often `body` runs in a second, measured over at least `seconds`.
double per_second(double seconds, const std::function<void()>& body);

}  // namespace feedrate

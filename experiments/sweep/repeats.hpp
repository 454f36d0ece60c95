#pragma once
#include <string>
#include <vector>

#include "experiments/measure/session.hpp"

namespace feedrate {

/// The repetitions of one point: says when there are enough. A fixed number is; or, with `--until-precise`, as many as
/// bring the 95 % intervals of throughput and of one percentile of latency within their bounds, or end one of the
/// limits. A repetition that was disturbed counts for neither, and is made up for, as often as there are repetitions.
class Repeats {
 public:
  explicit Repeats(const RunSettings& settings) : settings_(settings) {}
  /// Takes in a repetition's row, in any order. Where it was the last that is needed, returns what ended it, for the
  /// row: { "reason": "repetitions" | "precise" | "most repetitions" | "time limit" | "not ok", the intervals' relative
  /// half widths, by how much the repetitions differ (`spread`) and where that is too much to rely on (`unstable`) }.
  Json add(const Json& row);
  bool enough() const { return !stop_.empty(); }

 private:
  std::string why_enough() const;
  bool precise() const;

  RunSettings settings_;
  std::vector<double> throughputs_, latencies_, p50s_, p99s_;
  unsigned undisturbed_ = 0, disturbed_ = 0;
  double seconds_ = 0;
  std::string stop_;
};

/// The largest over the smallest; 1 where there is at most one.
double spread_of(const std::vector<double>& values);
/// By so much or more do repetitions of an unstable point differ.
inline constexpr double kUnstableThroughput = 1.5, kUnstableP50 = 1.5, kUnstableP99 = 3;

/// Whether a row says that something else on the machine spoilt it.
bool is_disturbed(const Json& row);

}  // namespace feedrate

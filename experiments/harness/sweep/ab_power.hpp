#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/harness/json.hpp"

/// What a comparison by `feedrate ab` will find, from how much its starts differ.
namespace feedrate {

/// The smallest change of one point among `points`, as a share, that is found in 80 % of the cases to be more than
/// `margin`. The mean of `starts` log ratios with this standard deviation is tested by Student's t; the risk of 5 % is
/// divided by the number of points, as Benjamini and Hochberg's correction does if no other point changes.
double detectable(double deviation, unsigned starts, std::size_t points, double margin = 0.01);

/// Standard deviations of the log ratio B / A between starts, of each point by figure and variant.
class Spreads {
 public:
  void add(const std::string& figure, const std::string& variant, double deviation);
  /// Lines that say which change is found by these many starts, from a variant's steadiest point to its least steady
  /// one; no line for a figure that none of `variants` has. `figures`: the figures shown; `variants`: the variant of
  /// each point.
  std::vector<std::string> lines(const std::vector<std::string>& figures, const std::vector<std::string>& variants,
                                 unsigned starts) const;

 private:
  std::map<std::string, std::map<std::string, std::vector<double>>> deviations_;
};

/// How much starts differed in the reference trials of this experiment on this kind of device; empty if there were
/// none.
Spreads reference_spreads(std::string_view experiment, std::string_view device);
/// The machines and the number of starts of the reference trials.
std::string_view reference_trials();

/// The log ratios of a comparison so far.
class Variation {
 public:
  /// Adds one visit. `a`, `b`: the medians of its slices by figure.
  void add(std::uint64_t point, const Json& a, const Json& b);
  /// `variants`: by the number of the point.
  Spreads spreads(const std::vector<std::string>& variants) const;

 private:
  std::map<std::string, std::map<std::uint64_t, std::vector<double>>> logs_;
};

}  // namespace feedrate

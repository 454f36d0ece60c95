#pragma once
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace feedrate {

/// One thing that this machine can't do better, measured bare: no queue, no headers, no bookkeeping.
struct Floor {
  std::string name;  ///< ends in its unit: _ns (median), _bytes_per_second (each way), _per_second
  std::string unit;
  std::string description;
  std::string started;             ///< the first reading
  double seconds = 0;              ///< that all readings took
  std::vector<double> readings{};  ///< in the order in which they were made

  double median() const;
  double least() const;
  double greatest() const;
};

/// Collects floors. They are read in rounds, one reading of each in a round, because a machine's state changes: a round
/// now and then through a run says how far. Whoever adds floors adds the same ones in every round.
class FloorList {
 public:
  /// `measured` false: floors are only named, for the catalogue.
  explicit FloorList(bool measured = true) : measured_(measured) {}
  void begin_round() { ++round_; }
  /// Reads a floor, once a round; one that fails is left out, with a warning.
  void add(std::string name, std::string unit, std::string description, const std::function<double()>& measure);
  const std::vector<Floor>& floors() const { return floors_; }

 private:
  bool measured_;
  unsigned round_ = 1;
  std::vector<Floor> floors_;
  std::vector<unsigned> read_in_;  // the round in which each was last read
};

/// What one reading of a rate takes. Five take as long as a single one that is long enough to show little noise.
inline constexpr double kReadingSeconds = 0.02;

/// What a floor of two threads or processes may take: where others have the cores, each turn waits for the scheduler.
inline constexpr double kLongestReadingSeconds = 5 * kReadingSeconds;

/// The median of `n` timings of `body`, after a tenth as many untimed, in nanoseconds. After `longest_seconds` it makes
/// do with the timings that it has, ten at least.
double median_ns(unsigned n, const std::function<void()>& body,
                 double longest_seconds = std::numeric_limits<double>::infinity());
/// How often `body` runs in a second, measured over at least `seconds`.
double per_second(double seconds, const std::function<void()>& body);

}  // namespace feedrate

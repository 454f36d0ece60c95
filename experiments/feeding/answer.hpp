#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/harness/measure/experiment.hpp"
#include "experiments/harness/measure/statistics.hpp"

namespace feedrate {

/// Summary of a sweep: the variant with the highest rate of small messages, the one with the highest byte rate of large
/// messages, and the one with the lowest latency of a lone message, each with its interval and the runner-up.
class Answer final : public Summary {
 public:
  /// Adds a cell's row, in any order. Tries of a search only show which members competed. Open load, traces and queues
  /// that deliver nothing do not count. Rows that the load generator limited count as lower bounds. Disturbed rows
  /// count if a point has no others.
  void add(const Json& row) override;
  /// Lines of at most 80 columns for a terminal; empty if no row counts.
  std::string text() const override;
  std::vector<Chosen> chosen() const override;

  /// A variant's best point.
  struct Place {
    std::string variant, settings;
    Values values;
    double rank = 0;  ///< decides which point of the variant this is
    Estimate value;
    std::size_t of = 1;      ///< number of the variant's points
    bool limited = false;    ///< limited by the load generator: the queue itself may be better
    bool disturbed = false;  ///< every repetition was disturbed
    bool unstable = false;
  };
  struct Category {
    std::string name;  ///< "small", "large" or "lone"
    std::size_t payload = 0;
    std::vector<Place> places;  ///< best first
  };
  std::vector<Category> categories() const;

 private:
  struct Measured {
    std::string queue, variant;
    Values values;
    std::size_t payload = 0;
    bool lone = false, limited = false, cpu = false;
    std::set<std::string> unstable;  // metrics
    ChosenValues messages, bytes, p50;
  };
  Category best(const std::string& name, std::size_t payload) const;

  ExperimentInfo info_{"feeding"};
  /// A line that names the queues and transfers that have no row that counts; empty if all have one.
  std::string absent_text() const;

  std::map<std::string, Measured> points_;  // keyed by parameters
  std::set<std::string> competed_;          // queues and transfers, also those that only a search tried
};

/// Lines that show a row of `feeding` in a terminal.
std::vector<std::pair<std::string, std::string>> feeding_lines(const ExperimentInfo&, const Json& row);

}  // namespace feedrate

#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/harness/measure/estimate.hpp"
#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {

/// What a sweep's cells say at a glance: which variant moves most small messages, which most bytes in large ones, and
/// which answers a lone message first; each with its interval, and the runner-up.
class Answer final : public Summary {
 public:
  /// Takes in a cell's row, in any order. Tries of a search, open load, traces and queues that deliver nothing don't
  /// count. Rows that the driver limited do, as a least; disturbed rows do where a point has no others.
  void add(const Json& row) override;
  /// Lines of at most 80 columns for a terminal; empty when there is nothing to say.
  std::string text() const override;

  /// A variant's best point.
  struct Place {
    std::string variant, settings;
    Estimate value;
    bool limited = false;    ///< by the load generator: the queue itself may be better
    bool disturbed = false;  ///< in every repetition
    bool unstable = false;
  };
  struct Category {
    std::string name;  ///< "small", "large" or "lone"
    std::size_t payload = 0;
    std::vector<Place> places;  ///< the best first
  };
  std::vector<Category> categories() const;

 private:
  struct Measured {
    std::string queue, variant;
    Values values;
    std::size_t payload = 0;
    bool lone = false, limited = false, disturbed = false, cpu = false;
    std::set<std::string> unstable;  // metrics
    std::vector<double> messages, bytes, p50;
  };
  Category best(const std::string& name, std::size_t payload) const;

  Kind kind_{"feeding"};
  std::map<std::string, Measured> points_;  // by parameters
};

}  // namespace feedrate

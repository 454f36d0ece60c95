#pragma once
#include "experiments/harness/json.hpp"
#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {

/// A cell that is measured in many short slices, each complete in itself: the figures of each slice, and their totals.
class SlicedCell {
 public:
  /// Adds a slice; `place` identifies it. Returns the slice as in the row: `place`, and its figures, or its status,
  /// cause and reason if it is not ok. A distribution has its p50 and p99 ("latency_ns.p50").
  const Json& add(Measurement, Json place);
  bool empty() const { return slices_.empty(); }
  const Json& slices() const { return slices_; }
  /// Medians of the numbers and sums of the distributions over the slices that are ok. Failed if a slice failed; the
  /// last slice's verdict if none is ok.
  Measurement total() const;

 private:
  Json slices_ = Json::array();
  std::map<std::string, std::vector<double>> numbers_;
  Measurement total_, last_bad_;
  bool any_ok_ = false, any_failed_ = false;
};

}  // namespace feedrate

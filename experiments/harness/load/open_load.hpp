#pragma once
#include <vector>

#include "experiments/harness/load/offer.hpp"
#include "experiments/harness/measure/experiment.hpp"
#include "experiments/harness/measure/measurement.hpp"

namespace feedrate {

/// Parameters for judging an open load, in addition to its result.
struct OpenLoad {
  std::size_t batch = 1;      ///< maximum number of requests submitted at once
  unsigned senders = 1;       ///< threads that submit
  unsigned sample_every = 1;  ///< one in this many requests is timed
  double pause_ns = 0;        ///< scheduling delay of spinning threads (the limit host_pause_p99_ns); 0: not measured
};

/// Adds an open load's results to its row (`load`, `service_ns`, `send_lag_ns`, `priorities_ns`) and judges the row. It
/// is `unsustainable` if the endpoint did not keep up, and `invalid` or flagged if the generator itself was late. The
/// reason contains the evidence.
void describe_open_load(const LoadResult&, const OpenLoad&, Measurement&);

/// The figures that describe_open_load() adds.
std::vector<Figure> open_load_figures();

/// How a capacity search offers load to points that have the axes of a LoadShape.
OfferedLoad offered_load();

}  // namespace feedrate

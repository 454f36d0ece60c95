#pragma once
#include <vector>

#include "experiments/harness/load/result.hpp"
#include "experiments/harness/measure/experiment.hpp"
#include "experiments/harness/measure/measurement.hpp"

namespace feedrate {

/// What an open load is judged by besides its result.
struct OpenLoad {
  std::size_t batch = 1;      ///< requests that are submitted at once at most
  unsigned senders = 1;       ///< threads that submit
  unsigned sample_every = 1;  ///< 1 of this many requests is timed
  double pause_ns = 0;  ///< how late threads that only poll are here (the limit host_pause_p99_ns); 0: not measured
};

/// Adds what an open load showed to its row (`load`, `service_ns`, `send_lag_ns`, `priorities_ns`), and judges it: if
/// the endpoint did not keep up, the row is `unsustainable`; if the generator itself was late, `invalid` or flagged.
/// The reason holds the evidence.
void describe_open_load(const LoadResult&, const OpenLoad&, Measurement&);

/// The figures that it adds.
std::vector<Figure> open_load_figures();

/// How a search for a capacity offers load to points that have the axes of a LoadShape.
OfferedLoad offered_load();

}  // namespace feedrate

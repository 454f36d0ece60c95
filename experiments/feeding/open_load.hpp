#pragma once
#include "experiments/feeding/load.hpp"
#include "experiments/harness/measure/measurement.hpp"

namespace feedrate {

/// Adds what an open load showed to its row (`load`, `service_ns`, `send_lag_ns`, `priorities_ns`), and judges it: when
/// the queue did not keep up, the row is `unsustainable`; when the generator itself was late, `invalid`. Either reason
/// holds the evidence. `pause_ns`: the floor host_pause_p99_ns, 0 where it was not measured.
void describe_open_load(const Point&, const PassResult&, unsigned sample_every, double pause_ns, Measurement&);

}  // namespace feedrate

#pragma once
#include "experiments/session.hpp"

namespace feedrate {

/// Adds what an open load showed to its row (`load`, `service_ns`, `send_lag_ns`, `priorities_ns`), and judges it: when
/// the queue did not keep up, the row is `unsustainable`; when the generator itself was late, `invalid`. Either reason
/// holds the evidence.
void describe_open_load(const Point&, const PassResult&, unsigned sample_every, Json& row);

}  // namespace feedrate

#pragma once
#include <array>

#include "experiments/feeding/axes.hpp"
#include "experiments/feeding/flow.hpp"

/// Parts of a row.
namespace feedrate {

Json to_json(const Counts&);
/// `latency_ns` and its like.
Json to_json(const Histogram&, unsigned sample_every);
/// `stages_ns`: those that any message had.
Json to_json(const std::array<Histogram, kStages>&);

}  // namespace feedrate

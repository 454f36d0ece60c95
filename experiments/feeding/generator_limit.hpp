#pragma once
#include <vector>

#include "experiments/feeding/load.hpp"
#include "experiments/harness/measure/settings.hpp"

namespace feedrate {

/// Rate of the load generator alone, in messages per second: the reference against which a rate is judged.
///
/// It is the greatest of `kGeneratorRuns` short runs of the `null` queue: a run may be slowed down, but none is faster
/// than the generator. It is measured directly after each cell that it judges, even if the cell is slow: on a busy
/// machine the generator is slower too, and a limit from another moment would make a cell look generator-bound at 133 %
/// of that limit. The generator-only point touches as much memory as the point itself (`generator_point_of`): it writes
/// the same payload bytes per message and compares as many result bytes in as many slots. Large payloads are bound by
/// host memory, so the generator-only point is bound in the same way.
struct GeneratorLimit {
  double median = 0, least = 0, greatest = 0;  ///< over the runs
};
inline constexpr unsigned kGeneratorRuns = 3;

/// Summary of the rates of these runs.
GeneratorLimit generator_limit_of(std::vector<double> rates);
/// Whether a rate says more about the load generator than about the queue.
bool generator_bound(double rate, const GeneratorLimit&);
/// The point at which the load generator is measured for `point`: the queue `null` with the same memory footprint.
Point generator_point_of(Point point, Device&);
/// Throws Failure.
GeneratorLimit measure_generator(const Point& generator_point, const Workload&, const Payloads&, Device&,
                                 const RunSettings&);

}  // namespace feedrate

#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/harness/json.hpp"
#include "experiments/harness/machine/gpu_sample.hpp"
#include "experiments/harness/machine/host_use.hpp"

namespace feedrate {

/// State of the machine during a phase of a measurement.
struct MachineState {
  struct Sample {
    double t = 0;  ///< seconds since the start of the phase
    GpuSample gpu;
  };
  double period_seconds = 1;
  std::vector<Sample> samples;  ///< in order of time; none without a GPU
  HostUse host;
  double service_cores = 0;            ///< CPU seconds per second of the user's servers that the measurement uses
  double sample_cost_seconds_max = 0;  ///< wall time of the longest sample, including waits for PCIe counters
  double sample_cpu_seconds_max = 0;   ///< CPU time of the most expensive sample
  bool expects_power_cap = false;      ///< the experiment measures the clock that the power cap allows
};

struct Range {
  double min = 0, mean = 0, max = 0;
};
/// Range over the samples that have the value.
std::optional<Range> range_of(const MachineState&, std::optional<double> GpuSample::*value);
/// Energy that the GPU used from the first to the last sample, according to its own counter.
std::optional<double> energy_j(const MachineState&);
/// Mean power: from the energy counter if there is one (it includes the time between samples), else from the samples.
std::optional<double> power_w(const MachineState&);

/// A row's `machine`, with the list of disturbances. Unknown values are left out. It contains at most 120 samples,
/// evenly spaced; the summary covers all samples.
Json to_json(const MachineState&);

/// What disturbed the phase from outside, each a sentence with its evidence; empty if nothing did.
struct Disturbance {
  std::string text;
  /// Whether a repetition with this disturbance does not count. Only kinds that tests/trials/disturbance.py could
  /// inject and find do so; the others are only recorded.
  bool excludes = false;
};
/// - other processes used cores while no core was idle (excludes);
/// - a control group's CPU quota was used up in some period, so that threads waited for the next period (excludes);
/// - something other than idleness, a user-set clock or an expected power cap held the GPU's clocks down;
/// - the SM clock of a busy GPU was below 75 % of its limit for none of these reasons;
/// - the CPU time that the hypervisor stole exceeded 2 % of the CPU time that this process used.
std::vector<Disturbance> disturbances(const MachineState&);

}  // namespace feedrate

#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/harness/json.hpp"
#include "experiments/harness/machine/gpu_sample.hpp"
#include "experiments/harness/machine/host_use.hpp"

namespace feedrate {

/// What the machine did during a phase of a measurement.
struct MachineState {
  struct Sample {
    double t = 0;  ///< seconds since the phase's begin
    GpuSample gpu;
  };
  double period_seconds = 1;
  std::vector<Sample> samples;  ///< by time; none without a GPU
  HostUse host;
  double sample_cost_seconds_max = 0;  ///< wall time of the dearest sample, its waits for PCIe counters included
  double sample_cpu_seconds_max = 0;   ///< CPU time of the dearest sample
};

struct Range {
  double min = 0, mean = 0, max = 0;
};
/// Over the samples that have the value.
std::optional<Range> range_of(const MachineState&, std::optional<double> GpuSample::*value);
/// What the GPU took from the first sample to the last, by its own counter.
std::optional<double> energy_j(const MachineState&);
/// Mean power: by the energy where it is counted, which misses nothing between samples, else over the samples.
std::optional<double> power_w(const MachineState&);

/// A row's `machine`; what is unknown is left out, disturbances are listed. At most 120 samples, picked evenly; the
/// summary is of all.
Json to_json(const MachineState&);

/// Why a repetition should be repeated, a sentence with its evidence each; empty when nothing disturbed it:
/// - something other than idleness or a chosen clock held the GPU's clocks down;
/// - the SM clock of a GPU at work was below 75 % of its limit, though nobody chose that;
/// - more than 2 % of the CPU time that this process used was stolen besides by the hypervisor;
/// - a control group's CPU quota was used up in some period, so that threads waited for the next one;
/// - its threads shared cores although others stood idle.
/// A GPU that always runs into its power cap, or a host that is always robbed, stays so: repeat a few times only.
std::vector<std::string> disturbances(const MachineState&);

}  // namespace feedrate

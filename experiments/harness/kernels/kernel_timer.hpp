#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "common/device/device.hpp"
#include "experiments/harness/json.hpp"
#include "experiments/harness/machine/gpu_sample.hpp"

namespace feedrate {

/// How a kernel is timed.
struct KernelTiming {
  double seconds = 0.5;     ///< of samples, warm-up not included
  unsigned warmup = 10;     ///< launches that are not timed
  unsigned least = 20;      ///< samples, however long they take
  unsigned most = 100'000;  ///< samples
  unsigned launches = 1;    ///< per sample, in sequence; the sample's time is divided by their number
  bool cold = false;        ///< the cache is flushed before each sample
  bool captured = false;    ///< a sample's launches are one graph, captured once
};

/// One sample, with the state of the GPU beside it if that is known.
struct KernelSample {
  double ns = 0;  ///< of one launch, by events around the sample
  std::optional<double> sm_clock_mhz, power_w;
};

/// Times launches by events around them. Calls `launch(stream, number)`; the number selects the inputs (Rotation). With
/// `captured`, launches 0 to `launches` - 1 are captured once and replayed. `watched` is asked between samples, at most
/// every 10 ms. A single launch of a few microseconds contains some of the host's latency: then use `captured`, or
/// several `launches`. `stop` ends it early. Throws Failure if the device reports an error.
std::vector<KernelSample> time_kernel(
    Device&, const std::function<void(Stream&, std::size_t number)>& launch, const KernelTiming&,
    const GpuSource& watched = {}, const std::function<bool()>& stop = [] { return false; });

/// For a row's `details`: the samples' number, and the range and median of clock and power beside them.
Json describe(const std::vector<KernelSample>&);
/// The same of what the compiler made.
Json to_json(const KernelResources&);

}  // namespace feedrate

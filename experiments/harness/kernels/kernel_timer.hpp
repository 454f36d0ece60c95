#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "common/device/device.hpp"
#include "experiments/harness/json.hpp"
#include "experiments/harness/machine/gpu_sample.hpp"

namespace feedrate {

/// Parameters for timing a kernel.
struct KernelTiming {
  double seconds = 0.5;     ///< duration of sampling, excluding the warm-up
  unsigned warmup = 10;     ///< samples that are not timed
  unsigned least = 20;      ///< minimum number of samples, regardless of `seconds`
  unsigned most = 100'000;  ///< maximum number of samples
  unsigned launches = 1;    ///< launches per sample, in sequence; the sample's time is divided by their number
  bool cold = false;        ///< flush the cache before each sample
  bool captured = false;    ///< combine a sample's launches in one graph, captured once
  double pause_ms = 0;      ///< idle time before each sample
};

/// One sample, with the GPU's state at that time if it is known.
struct KernelSample {
  double ns = 0;  ///< time of one launch, from events around the sample
  std::optional<double> sm_clock_mhz, power_w, temperature_c;
  std::optional<double> energy_j;   ///< the GPU's counter, if it was read again since the sample before
  std::uint64_t energy_at_ns = 0;   ///< when it was read
  std::uint64_t clock_reasons = 0;  ///< bits of `clock_reason`; 0 if unknown
};

/// Queues one launch; the number selects the inputs (Rotation).
using QueueKernel = std::function<void(Stream&, std::size_t number)>;

/// A kernel that is timed in turn with others.
struct TimedKernel {
  QueueKernel queue;
  unsigned launches = 1;  ///< per sample
};

/// Times kernels in turn, in blocks of one sample each. The order alternates (ABBA), so that a trend of clock or
/// temperature affects all kernels equally. Returns the samples by kernel; samples with the same index belong to the
/// same block. The numbers of `timing` count samples of each kernel; its `launches` is not used.
std::vector<std::vector<KernelSample>> time_in_turn(
    Device&, const std::vector<TimedKernel>&, const KernelTiming& timing, const GpuSource& watched = {},
    const std::function<bool()>& stop = [] { return false; });

/// Times launches of one kernel with events around them. With `captured`, launches 0 to `launches` - 1 are captured
/// once and replayed. `watched` is read by another thread, every 10 ms. The time of a single launch of a few
/// microseconds includes part of the host's latency; use `captured` or several `launches` for such kernels. Timing ends
/// early when `stop` returns true. Throws Failure if the device reports an error.
std::vector<KernelSample> time_kernel(
    Device&, const QueueKernel& launch, const KernelTiming&, const GpuSource& watched = {},
    const std::function<bool()>& stop = [] { return false; });

/// Energy of one launch in joules, from samples of one kernel that was timed alone, with `launches` per sample. The
/// GPU's counter moves in steps. The result is the difference of its values at the first and the last reading at which
/// it had just moved. Each of these times is uncertain by one reading (10 ms), so the result is empty if they are less
/// than 150 ms apart. NVML's power would be wrong, because it is the mean of the last second.
std::optional<double> energy_of_launch(const std::vector<KernelSample>&, unsigned launches);

/// For a row's `details`: the number of samples, with the range and median of their clock, power and temperature, and
/// the reasons why the clock was below its maximum.
Json describe(const std::vector<KernelSample>&);
/// For a row's `details`: the kernel's resources as compiled.
Json to_json(const KernelResources&);

/// Inputs of a kernel in rotation, in device memory. Consecutive launches get different inputs, and an input has left
/// the cache before it is used again.
class Rotation {
 public:
  /// Creates enough inputs of `bytes` each to exceed `times` times the device's cache size; at least two.
  Rotation(Device& device, std::size_t bytes, unsigned times = 2)
      : Rotation(device, bytes,
                 std::max<std::size_t>(2, times * device.info().cache / std::max<std::size_t>(bytes, 1) + 1), 0) {}
  /// Creates `copies` inputs.
  static Rotation of(Device& device, std::size_t bytes, std::size_t copies) { return {device, bytes, copies, 0}; }

  std::size_t size() const { return buffers_.size(); }
  /// The input for the launch with this number.
  const Buffer& at(std::size_t turn) const { return buffers_[turn % buffers_.size()]; }

 private:
  Rotation(Device& device, std::size_t bytes, std::size_t copies, int) {
    for (std::size_t i = 0; i < copies; ++i) buffers_.push_back(device.allocate_device(bytes));
  }
  std::vector<Buffer> buffers_;
};

/// Buffer of twice the device's cache size that is written between two launches, so that the next launch finds none of
/// its data in the cache.
class CacheFlush {
 public:
  explicit CacheFlush(Device& device)
      : buffer_(device.allocate_device(std::max<std::size_t>(2 * device.info().cache, 1), Fresh::as_is)) {}
  void queue(Stream& stream) { stream.fill(buffer_.data(), ++value_, buffer_.size()); }

 private:
  Buffer buffer_;
  unsigned char value_ = 0;
};

}  // namespace feedrate

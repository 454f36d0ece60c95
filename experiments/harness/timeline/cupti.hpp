#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "experiments/harness/timeline/timeline.hpp"

namespace feedrate {

/// Why nothing can be recorded here (a build without CUPTI's header, no library); empty when it can. Says nothing of
/// the GPU.
std::string cupti_unavailable();

/// Lets NVTX ranges reach CUPTI: at its first call NVTX loads the tool that an environment variable names, and no
/// other ever. So call this before the first range, and before the first thread, since it changes the environment. A
/// tool that is named there already stays; without CUPTI it does nothing.
void prepare_ranges();

struct Recording {
  std::vector<Activity> activities;  ///< by their begin
  std::uint64_t dropped = 0;         ///< records that found no room, of all kinds
  std::uint64_t untimed = 0;         ///< work on the GPU without times: most of it had not ended
};

/// Records what the GPU does, the CUDA calls that gave it the work, and NVTX ranges.
class ActivityRecorder {
 public:
  virtual ~ActivityRecorder() = default;
  /// From now on records are kept. May be called again after `end`. Neither this nor `end` waits for the device.
  virtual void begin() = 0;
  /// What ended since `begin`. Before it, wait for the streams and stop resident kernels: a kernel's times come when it
  /// has ended, and one that still runs is told of in `untimed` alone.
  virtual Recording end() = 0;
};

/// Some 0.6 million kernels, 1.4 million copies or 3 million calls.
inline constexpr std::size_t kRecordBytes = 128 << 20;

/// To be called before CUDA's context is made (by the first Device), because CUPTI takes its memory on the device with
/// it: later that may wait for a resident kernel, for ever. Keeps records of about `most_bytes`, in memory that it
/// takes at once, and counts those beyond. All work between this and the recorder's end is traced, and a little slower.
/// Throws Failure when CUPTI is missing or refuses (another profiler has it), or when there is a recorder already.
std::unique_ptr<ActivityRecorder> open_activity_recorder(std::size_t most_bytes = kRecordBytes);

}  // namespace feedrate

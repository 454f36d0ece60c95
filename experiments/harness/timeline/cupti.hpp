#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "experiments/harness/timeline/timeline.hpp"

namespace feedrate {

/// Reason why recording is unavailable (a build without CUPTI's header, or no library); empty if it is available. Does
/// not check the GPU.
std::string cupti_unavailable();

/// Connects NVTX ranges to CUPTI. At its first call NVTX loads the tool that an environment variable specifies, and
/// never loads another one. So call this before the first range, and before the first thread, because it changes the
/// environment. If the variable is already set, it is not changed. Does nothing without CUPTI.
void prepare_ranges();

struct Recording {
  std::vector<Activity> activities;  ///< ordered by start time
  std::uint64_t dropped = 0;         ///< records of any kind that were dropped for lack of space
  std::uint64_t untimed = 0;         ///< records of GPU work without times, mostly work that had not ended
};

/// Records work on the GPU, the CUDA calls that submitted it, and NVTX ranges.
class ActivityRecorder {
 public:
  virtual ~ActivityRecorder() = default;
  /// Starts keeping records. May be called again after `end`. Neither `begin` nor `end` waits for the device.
  virtual void begin() = 0;
  /// Returns the records of work that ended since `begin`. First wait for the streams and stop resident kernels: the
  /// times of a kernel are known only after it has ended, and a kernel that is still running counts only in `untimed`.
  virtual Recording end() = 0;
};

/// Room for about 0.6 million kernels, 1.4 million copies or 3 million calls.
inline constexpr std::size_t kRecordBytes = 128 << 20;

/// Call this before the CUDA context is created (by the first Device), because CUPTI allocates its device memory with
/// the context; a later allocation may wait forever for a resident kernel. Keeps records of about `max_bytes`, in
/// memory allocated at once, and counts any further records. All work until the recorder's destruction is traced, which
/// makes it a little slower. Throws Failure if CUPTI is missing or busy (used by another profiler), or if a recorder
/// already exists.
std::unique_ptr<ActivityRecorder> open_activity_recorder(std::size_t max_bytes = kRecordBytes);

}  // namespace feedrate

#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "experiments/harness/atomic_file.hpp"
#include "experiments/harness/timeline/cupti.hpp"
#include "experiments/harness/timeline/timeline.hpp"

namespace feedrate {

/// A file with the timeline of one cell's timed phase, on the host's clock: CUPTI's records of the GPU, of CUDA calls
/// and of NVTX ranges, if there is a GPU, and the spans that the experiment adds.
class CellTimeline {
 public:
  /// Construct it first, before any thread, NVTX range or device. `gpu` states whether the cell will run on a GPU.
  /// Throws Failure if CUPTI is needed but unavailable, and BadInput if the file cannot be written.
  CellTimeline(const std::string& file, bool gpu);
  ~CellTimeline();

  void begin();
  /// Call it when all started work has ended on the device. Writes the file, whose `otherData` consists of `about` and
  /// the numbers of dropped and untimed records. Returns how the GPU was used for `seconds` starting at `begin_ns`;
  /// null without a GPU. Throws Failure if the file cannot be written.
  Json end(const std::vector<Span>& spans, std::uint64_t begin_ns, double seconds, Json about);

 private:
  AtomicFile file_;
  std::unique_ptr<ActivityRecorder> recorder_;
  bool written_ = false;
};

}  // namespace feedrate

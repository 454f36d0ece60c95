#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "experiments/harness/timeline/cupti.hpp"
#include "experiments/harness/timeline/timeline.hpp"
#include "experiments/harness/whole_file.hpp"

namespace feedrate {

/// A timeline of one cell's timed phase, as a file: what CUPTI saw of the GPU, of CUDA calls and of NVTX ranges, where
/// there is a GPU, and the spans that the experiment adds, all on the host's clock.
class CellTimeline {
 public:
  /// Make it first of all: before any thread, NVTX range or device. `gpu`: the cell will run on one; throws Failure
  /// when CUPTI can't be had then, and BadInput for a file that can't be written.
  CellTimeline(const std::string& file, bool gpu);
  ~CellTimeline();

  void begin();
  /// When all that was begun has ended on the device. Writes the file, whose `otherData` is `about` and what found no
  /// room, and returns how the GPU spent the `seconds` from `begin_ns` on; null without one. Throws Failure when the
  /// file can't be written.
  Json end(const std::vector<Span>& spans, std::uint64_t begin_ns, double seconds, Json about);

 private:
  WholeFile file_;
  std::unique_ptr<ActivityRecorder> recorder_;
  bool written_ = false;
};

}  // namespace feedrate

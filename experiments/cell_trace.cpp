#include "experiments/cell_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "common/error.hpp"

namespace feedrate {
namespace {

std::vector<Span> spans_of(std::span<const StageSample> samples, const ClockMap& clock) {
  std::vector<Span> spans;
  for (const StageSample& sample : samples) {
    const StageTimes times = on_host_clock(sample.times, clock);
    std::uint64_t before = sample.due;
    for (std::size_t i = 0; i < kStages; ++i) {
      // As in the row's stages: a time that was not taken is none of its own, and none is before the last.
      if (times[i] == 0 || times[i] <= before) continue;
      spans.push_back(
          {fmt::format("producer {}", producer_of(sample.id)), kStageNames[i], before, times[i], sample.id});
      before = times[i];
    }
  }
  return spans;
}

}  // namespace

CellTrace::CellTrace(std::string file, bool gpu) : file_(std::move(file)) {
  if (!std::ofstream(file_)) throw BadInput("--trace", file_, "a file that can be written");
  if (!gpu) return;
  prepare_ranges();
  recorder_ = open_activity_recorder();
}

void CellTrace::begin() {
  if (recorder_) recorder_->begin();
}

Json CellTrace::end(std::span<const StageSample> samples, const ClockMap& clock, std::uint64_t begin_ns, double seconds,
                    Json about) {
  Recording recording;
  if (recorder_) recording = recorder_->end();
  about["dropped_records"] = recording.dropped;
  about["untimed_records"] = recording.untimed;
  write_timeline(file_, recording.activities, spans_of(samples, clock), about);
  if (!recorder_) return {};
  return to_json(gpu_use(recording.activities, begin_ns, begin_ns + static_cast<std::uint64_t>(seconds * 1e9)));
}

}  // namespace feedrate

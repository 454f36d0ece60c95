#include "experiments/harness/timeline/cell_timeline.hpp"

#include <fmt/format.h>

#include <spdlog/spdlog.h>

#include <system_error>

#include "common/error.hpp"

namespace feedrate {
CellTimeline::~CellTimeline() {
  if (!written_)
    spdlog::warn("no timeline in {}: the cell ended before its timed phase was complete", file_.path().string());
}

namespace {

AtomicFile writable(const std::string& file) try { return AtomicFile(file); } catch (const std::system_error& error) {
  throw BadInput("--trace", file, fmt::format("a writable file ({})", reason_of(error)));
}

}  // namespace

CellTimeline::CellTimeline(const std::string& file, bool gpu) : file_(writable(file)) {
  if (!gpu) return;
  prepare_ranges();
  recorder_ = open_activity_recorder();
}

void CellTimeline::begin() {
  if (recorder_) recorder_->begin();
}

Json CellTimeline::end(const std::vector<Span>& spans, std::uint64_t begin_ns, double seconds, Json about) {
  Recording recording;
  if (recorder_) recording = recorder_->end();
  about["dropped_records"] = recording.dropped;
  about["untimed_records"] = recording.untimed;
  written_ = true;  // otherwise an exception reports the reason
  write_timeline(file_, recording.activities, spans, about);
  if (!recorder_) return {};
  return to_json(gpu_use(recording.activities, begin_ns, begin_ns + static_cast<std::uint64_t>(seconds * 1e9)));
}

}  // namespace feedrate

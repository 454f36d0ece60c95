#include "experiments/timeline/cell_trace.hpp"

#include <fmt/format.h>

#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>

#include "common/error.hpp"

namespace feedrate {
namespace {

std::vector<Span> spans_of(std::span<const StageSample> samples, const ClockMap& clock) {
  std::vector<Span> spans;
  for (const StageSample& sample : samples) {
    for_each_stage(sample, clock, [&](Stage stage, std::uint64_t begin, std::uint64_t end, std::uint64_t) {
      if (begin == end) return;
      const char* const name = kStageNames[static_cast<std::size_t>(stage)];
      spans.push_back({fmt::format("producer {}", producer_of(sample.id)), name, begin, end, sample.id});
    });
  }
  return spans;
}

}  // namespace

CellTrace::~CellTrace() {
  if (written_) return;
  spdlog::warn("no timeline in {}: the cell did not get so far", file_);
  std::filesystem::remove(file_);
}

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
  written_ = true;
  if (!recorder_) return {};
  return to_json(gpu_use(recording.activities, begin_ns, begin_ns + static_cast<std::uint64_t>(seconds * 1e9)));
}

}  // namespace feedrate

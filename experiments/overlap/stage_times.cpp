#include "experiments/overlap/stage_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/error.hpp"
#include "experiments/harness/measure/statistics.hpp"

namespace feedrate::overlap {
namespace {

/// One stage with its own buffers, which runs independently of the others.
class LoneStage {
 public:
  LoneStage(const Pipeline& pipeline, unsigned stage, Device& device)
      : pipeline_(pipeline),
        stage_(stage),
        in_(device.allocate_device(pipeline.bytes())),
        out_(device.allocate_device(pipeline.bytes())),
        begun_(device.event(true)),
        ended_(device.event(true)),
        stream_(device.stream()) {}

  void begin() { stream_->record(*begun_); }
  void queue(unsigned item) {
    const bool first = stage_ == 0, last = stage_ + 1 == pipeline_.stages();
    pipeline_.enqueue(*stream_, stage_, first ? pipeline_.source(item) : in_.data(),
                      last ? pipeline_.result(item) : out_.data());
  }
  void end() { stream_->record(*ended_); }
  /// Nanoseconds from begin() to end(), measured with the device's events.
  double wait_ns() {
    stream_->synchronize();
    return ended_->ns_since(*begun_);
  }

 private:
  const Pipeline& pipeline_;
  unsigned stage_;
  Buffer in_, out_;
  std::unique_ptr<Event> begun_, ended_;
  std::unique_ptr<Stream> stream_;  // last: its destructor waits for work that uses all of the above
};

/// Nanoseconds per item in each of these stages while all run at once. Work is queued item by item, so that no stage
/// gets far ahead of the others.
std::vector<double> item_ns(std::span<LoneStage* const> stages, unsigned items) {
  for (LoneStage* const stage : stages) stage->begin();
  for (unsigned item = 0; item < items; ++item) {
    for (LoneStage* const stage : stages) stage->queue(item);
  }
  for (LoneStage* const stage : stages) stage->end();
  std::vector<double> times;
  for (LoneStage* const stage : stages) times.push_back(stage->wait_ns() / items);
  return times;
}

constexpr unsigned kReadings = 5;

}  // namespace

StageTimes measure_stages(const PipelineShape& shape, Device& device, unsigned items) {
  Pipeline pipeline(shape, device);
  pipeline.begin(items);
  std::vector<std::unique_ptr<LoneStage>> owned;
  std::vector<LoneStage*> stages;
  for (unsigned s = 0; s < pipeline.stages(); ++s) {
    owned.push_back(std::make_unique<LoneStage>(pipeline, s, device));
    stages.push_back(owned.back().get());
  }
  item_ns(stages, 1);  // the first launches load the modules
  std::vector<std::vector<double>> alone(stages.size()), contended(stages.size());
  for (unsigned reading = 0; reading < kReadings; ++reading) {
    const std::vector<double> together = item_ns(stages, items);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      alone[s].push_back(item_ns(std::span(&stages[s], 1), items).front());
      contended[s].push_back(together[s]);
    }
  }
  StageTimes times;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    times.alone.push_back(median_of(alone[s]));
    times.contended.push_back(median_of(contended[s]));
  }
  return times;
}

double ideal_ns(std::span<const double> stages, unsigned items) {
  const double through = std::accumulate(stages.begin(), stages.end(), 0.0);
  return through + (items - 1) * *std::max_element(stages.begin(), stages.end());
}

Calibration::Line Calibration::measure(const Key& key) {
  const auto& [role, words, blocks] = key;
  constexpr unsigned kItems = 8;
  // The launch time hides the time of a few rounds, so increase the larger number until the difference is clear.
  constexpr std::uint32_t kFew = 16, kMax = 1 << 22;
  constexpr double kClearNs = 50e3;
  // Pipeline of the stage and a neighbour that makes or takes its items; only the neighbour's position matters.
  const bool first = role == StageRole::generate;
  PipelineShape shape{
      {{"a", first ? role : StageRole::generate}, {"b", first ? StageRole::reduce : role}}, {}, words, blocks, kItems};
  const auto item_ns = [&](std::uint32_t rounds) {
    shape.rounds = {first ? rounds : 1, first ? 1 : rounds};
    if (role == StageRole::transform) {  // not the last stage, whose result is not an item
      shape.stages = {{"a", StageRole::generate}, {"b", role}, {"c", StageRole::reduce}};
      shape.rounds = {1, rounds, 1};
    }
    return measure_stages(shape, device_, kItems).alone[first ? 0 : 1];
  };
  const double few = item_ns(kFew);
  for (std::uint32_t rounds = 4 * kFew; rounds <= kMax; rounds *= 4) {
    const double many = item_ns(rounds);
    if (many < few + kClearNs) continue;
    const double round_ns = (many - few) / (rounds - kFew);
    return {std::max(few - kFew * round_ns, 0.0), round_ns};
  }
  throw Failure(fmt::format("{} rounds of a stage take no longer than {}: the device's times are wrong", kMax, kFew));
}

std::uint32_t Calibration::rounds(StageRole role, std::uint64_t words, unsigned blocks, double cost_ns) {
  const Key key{role, words, blocks};
  auto found = known_.find(key);
  if (found == known_.end()) found = known_.emplace(key, measure(key)).first;
  const Line& line = found->second;
  return static_cast<std::uint32_t>(std::clamp(std::round((cost_ns - line.start_ns) / line.round_ns), 1.0, 1e9));
}

std::vector<std::string> balances() { return {"even", "first", "middle", "last", "rising"}; }

std::vector<double> spread_costs(const std::string& balance, double average_ns, std::size_t kernels) {
  constexpr double kHeavy = 3;  // cost of a heavy kernel relative to the others
  std::vector<double> shares(kernels, 1);
  if (balance == "first") {
    shares.front() = kHeavy;
  } else if (balance == "middle") {
    shares[kernels / 2] = kHeavy;
  } else if (balance == "last") {
    shares.back() = kHeavy;
  } else if (balance == "rising") {
    std::iota(shares.begin(), shares.end(), 1);
  } else if (balance != "even") {
    throw BadInput("--balance", balance, "even, first, middle, last, rising");
  }
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share *= average_ns * static_cast<double>(kernels) / all;
  return shares;
}

}  // namespace feedrate::overlap

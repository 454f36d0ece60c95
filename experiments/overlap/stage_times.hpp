#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "variants/overlap/pipeline.hpp"

/// What the stages of a pipeline take, alone and beside each other: what a strategy's time is compared with.
namespace feedrate::overlap {

/// Nanoseconds of one item in each stage, when each stage does nothing but `items` items in a row. `alone`: while the
/// others rest; `contended`: while they do the same, on streams and buffers of their own, without waiting for each
/// other.
struct StageTimes {
  std::vector<double> alone, contended;
};
StageTimes measure_stages(const PipelineShape&, Device&, unsigned items);

/// The least time for `items` items when a stage works on one at a time and all stages at once: the first item through
/// all stages, and every further one behind it in the slowest.
double ideal_ns(std::span<const double> stages, unsigned items);

/// How many rounds a stage needs on this device to take `cost_ns` for an item; measured by two numbers of rounds, kept
/// for each kind of stage.
class Calibration {
 public:
  explicit Calibration(Device& device) : device_(device) {}
  std::uint32_t rounds(StageRole, std::uint64_t words, unsigned blocks, double cost_ns);

 private:
  struct Line {
    double start_ns, round_ns;
  };
  using Key = std::tuple<StageRole, std::uint64_t, unsigned>;
  Line measure(const Key&);

  Device& device_;
  std::map<Key, Line> known_;
};

}  // namespace feedrate::overlap

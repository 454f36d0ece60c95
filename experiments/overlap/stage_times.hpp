#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "variants/overlap/pipeline.hpp"

/// Times of a pipeline's stages, alone and concurrent, for comparison with a strategy's time.
namespace feedrate::overlap {

/// Nanoseconds per item in each stage, measured over `items` consecutive items. `alone`: while the other stages are
/// idle. `contended`: while all stages run, each on its own stream and buffers, without waiting for each other.
struct StageTimes {
  std::vector<double> alone, contended;
};
StageTimes measure_stages(const PipelineShape&, Device&, unsigned items);

/// Shortest time for `items` items if all stages run at once and each works on one item at a time: the first item
/// passes all stages, and every further item adds one step of the slowest stage.
double ideal_ns(std::span<const double> stages, unsigned items);

/// Number of rounds for which a stage takes `cost_ns` per item on this device. It is measured with two different
/// numbers of rounds and cached for each kind of stage.
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

/// Names of the ways to distribute a pipeline's cost over its kernels.
std::vector<std::string> balances();

/// Cost of each of `kernels` kernels, with the average `average_ns`. Throws BadInput for an unknown balance.
std::vector<double> spread_costs(const std::string& balance, double average_ns, std::size_t kernels);

}  // namespace feedrate::overlap

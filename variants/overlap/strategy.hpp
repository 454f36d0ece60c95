#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/axes.hpp"
#include "common/registry.hpp"
#include "variants/overlap/pipeline.hpp"

namespace feedrate {

/// A way to run a pipeline's items: which streams, buffers and orders there are. Used by one thread.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Runs the first `items` of what the pipeline has begun, and returns when all results are there. Throws Failure when
  /// the device refuses.
  virtual void run(unsigned items) = 0;
};

struct StrategyConfig {
  const Pipeline& pipeline;
  std::span<Device* const> devices;  ///< the first is the pipeline's; the others, where the strategy uses more
  unsigned items;                    ///< most in a run
  Values own = {};                   ///< of its own axes
  /// One of the entry's `waits`, which is left out: a fault, for tests.
  std::string without = {};

  Device& device() const { return *devices.front(); }
  bool waits_for(const std::string& what) const { return without != what; }
};

struct StrategyEntry {
  std::string description;
  std::vector<Axis> axes = {};  ///< of its own
  unsigned devices = 1;         ///< that it uses
  /// The orders that it keeps by waiting. Items are corrupted when one of these waits is left out.
  std::vector<std::string> waits = {};
  /// How many buffers for items it has between two stages: what it needs of the device's memory.
  std::function<unsigned(const Values& own)> buffers;
  /// Why it can't run on a device like this; empty if it can.
  std::function<std::string(const DeviceInfo&)> unavailable = [](const DeviceInfo&) { return std::string(); };
  /// Why it can't run this pipeline on devices that it is available on; empty when it can.
  std::function<std::string(const PipelineShape&, std::span<Device* const>)> refuse = {};
  std::function<std::unique_ptr<Strategy>(const StrategyConfig&)> make;
  /// SMs that a kernel of its own keeps for a whole run; else none.
  std::function<unsigned(const PipelineShape&)> resident_blocks = {};
};
/// Why a strategy can't run this pipeline on these devices; empty if it can.
inline std::string refuse(const StrategyEntry& strategy, const PipelineShape& shape, std::span<Device* const> devices) {
  if (auto reason = strategy.unavailable(devices.front()->info()); !reason.empty()) return reason;
  return strategy.refuse ? strategy.refuse(shape, devices) : "";
}

using Strategies = Registry<StrategyEntry>;
using StrategyRegistration = Registration<StrategyEntry>;

/// A `make` that constructs T from its config.
template <class T>
std::unique_ptr<Strategy> make_strategy(const StrategyConfig& config) {
  return std::make_unique<T>(config);
}

/// The names of the waits that strategies with events and buffers have: for an item to be there, and for a buffer to
/// have been read before it is written again.
inline constexpr auto kReady = "ready", kFree = "free";
/// The wait of kernels that are launched early, which a Pipeline of EarlyKernels::do_not_wait lacks.
inline constexpr auto kEarly = "early";

}  // namespace feedrate

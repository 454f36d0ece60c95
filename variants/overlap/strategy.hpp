#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/axes.hpp"
#include "common/registry.hpp"
#include "variants/overlap/pipeline.hpp"

namespace feedrate {

/// A way to run a pipeline's items, with its streams, buffers and ordering. Used by one thread.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Runs the first `items` items that the pipeline has prepared, and returns when all results are available. Throws
  /// Failure if the device reports an error.
  virtual void run(unsigned items) = 0;
};

struct StrategyConfig {
  const Pipeline& pipeline;
  std::span<Device* const> devices;  ///< the pipeline's device, then others if the strategy uses more than one
  unsigned items;                    ///< maximum number of items in a run
  Values own = {};                   ///< values of the strategy's own axes
  /// One of the entry's `waits` to leave out: a planted fault, for tests.
  std::string without = {};

  Device& device() const { return *devices.front(); }
  bool waits_for(const std::string& what) const { return without != what; }
};

struct StrategyEntry {
  std::string description;
  std::vector<Axis> axes = {};  ///< the strategy's own axes
  unsigned devices = 1;         ///< number of devices that the strategy uses
  /// The waits that keep its work in order. If one of them is left out, items are corrupted.
  std::vector<std::string> waits = {};
  /// Number of item buffers between two stages, which determines the device memory that it needs.
  std::function<unsigned(const Values& own)> buffers;
  /// Reason why it cannot run on such a device; empty if it can.
  std::function<std::string(const DeviceInfo&)> unavailable = [](const DeviceInfo&) { return std::string(); };
  /// Reason why it cannot run this pipeline on devices on which it is available; empty if it can.
  std::function<std::string(const PipelineShape&, std::span<Device* const>)> why_unsupported = {};
  std::function<std::unique_ptr<Strategy>(const StrategyConfig&)> make;
  /// Number of blocks that its own kernel keeps resident for an entire run; unset: none.
  std::function<unsigned(const PipelineShape&)> resident_blocks = {};
};
/// Reason why a strategy cannot run this pipeline on these devices; empty if it can.
inline std::string why_unsupported(const StrategyEntry& strategy, const PipelineShape& shape,
                                   std::span<Device* const> devices) {
  if (auto reason = strategy.unavailable(devices.front()->info()); !reason.empty()) return reason;
  return strategy.why_unsupported ? strategy.why_unsupported(shape, devices) : "";
}

using Strategies = Registry<StrategyEntry>;
using StrategyRegistration = Registration<StrategyEntry>;

/// A `make` that constructs T from its config.
template <class T>
std::unique_ptr<Strategy> make_strategy(const StrategyConfig& config) {
  return std::make_unique<T>(config);
}

/// Names of the waits in strategies that use events and buffers: for an item to arrive, and for a buffer to have been
/// read before it is overwritten.
inline constexpr auto kReady = "ready", kFree = "free";
/// The wait in kernels that are launched early; a Pipeline with EarlyKernels::do_not_wait lacks it.
inline constexpr auto kEarly = "early";

}  // namespace feedrate

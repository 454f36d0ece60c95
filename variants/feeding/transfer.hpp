#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/device/device.hpp"
#include "common/registry.hpp"
#include "kernels/workload.hpp"
#include "variants/feeding/bounds.hpp"

namespace feedrate {

/// Messages on the host and room for their results, in memory of the kind that the transfer asks for. Whoever submits
/// it keeps both untouched until it comes back. `tag` is the broker's own, `order` the worker's.
struct Batch {
  ConstMessages in;
  Messages out;  ///< as many as `in`
  std::uint64_t tag = 0;
  std::uint64_t order = 0;  ///< of the batches that one worker submits
  /// Asks the transfer for the times, in ns of the device's clock, at which the copies were done; 0 where there are
  /// none.
  bool timed = false;
  std::uint64_t copied_in = 0, copied_out = 0;
  StageMarks marks = {};  ///< for the kernel, when some of the messages are sampled
};

/// Moves batches to the device, has them worked on, and moves the results back. Used by one thread.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// True: accepted, and the batch will come back through `poll`. False: busy, nothing happened; poll first.
  virtual bool submit(const Batch&) = 0;
  /// A batch whose results have arrived, if there is one. Batches may come back in any order.
  virtual std::optional<Batch> poll() = 0;
  /// What was submitted and still waits for company goes now: whoever submits has no further batch at hand.
  virtual void flush() {}
  /// What it chose where the point left it open, for the row.
  virtual Choices choices() const { return {}; }
};

struct TransferConfig {
  Device& device;
  const Workload& workload;
  std::size_t most_messages;  ///< in one batch
  std::size_t in_stride, out_stride;
  unsigned block;
  Values own = {};  ///< of its own axes
  Limits limits = {};
  const Point* point = nullptr;  ///< for whoever chooses by it; may be missing
};

/// What a batch takes by the machine's limits: how `auto` chooses.
struct Effort {
  double
      busy_ns;  ///< until the next batch can follow: of the worker's thread, the bus or the GPU, whichever is longest
  double lone_ns;  ///< from the first call until the results are there, when nothing else is under way
};

struct TransferEntry {
  std::string description;
  HostMemory memory;            ///< where its batches must lie
  std::vector<Axis> axes = {};  ///< of its own
  /// Batches that may be in flight at once.
  std::function<unsigned(const Point&)> depth;
  std::function<std::unique_ptr<Transfer>(const TransferConfig&)> make;
  /// Names the limits of a GPU that bind it at a point.
  std::function<void(const Bounded&, Bounds&)> bounds = {};
  /// Why it can't be on this device; empty when it can.
  std::function<std::string(const DeviceInfo&)> refuse = {};
  /// Nothing if the limits that it needs are not known. Without this, `auto` never chooses it.
  std::function<std::optional<Effort>(const Bounded&, const Limits&)> effort = {};
  /// Settings of its own axes that `auto` compares for lone messages, besides the standard ones.
  std::vector<Values> alone = {};
  /// Axes of its own that matter to how fast it is, with the values that a search for its best settings tries.
  std::vector<AxisValues> search = {};
};
using Transfers = Registry<TransferEntry>;
using TransferRegistration = Registration<TransferEntry>;

/// A `make` that constructs T from its config.
template <class T>
std::unique_ptr<Transfer> make_transfer(const TransferConfig& config) {
  return std::make_unique<T>(config);
}

}  // namespace feedrate

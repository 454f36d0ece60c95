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

/// Messages on the host and room for their results, in the kind of memory that the transfer requires. The submitter
/// must not touch either until the batch is returned. `tag` belongs to the broker, `order` to the worker.
struct Batch {
  ConstMessages in;
  Messages out;  ///< the same number as `in`
  std::uint64_t tag = 0;
  std::uint64_t order = 0;  ///< sequence number of the batch within its worker
  /// Whether to record when the copies completed, in ns of the device's clock; a copy that does not exist leaves 0.
  bool timed = false;
  std::uint64_t copied_in = 0, copied_out = 0;
  StageRecorder recorder = {};  ///< for the kernel, if some of the messages are sampled
};

/// Moves batches to the device, launches the work on them, and moves the results back. Used by one thread.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// Returns true if the batch was accepted; `poll` will return it. Returns false, without any effect, if the transfer
  /// is busy; poll first.
  virtual bool submit(const Batch&) = 0;
  /// Returns a batch whose results have arrived, if there is one. Batches may be returned in any order.
  virtual std::optional<Batch> poll() = 0;
  /// Sends batches that are waiting to be grouped with others, because the submitter has no more batches.
  virtual void flush() {}
  /// The values chosen for axes that the point left open; stored in the row.
  virtual Choices choices() const { return {}; }
};

struct TransferConfig {
  Device& device;
  const Workload& workload;
  std::size_t max_messages;  ///< maximum per batch
  std::size_t in_stride, out_stride;
  unsigned block;
  Values own = {};  ///< values of the transfer's own axes
  Limits limits = {};
  const Point* point = nullptr;  ///< for transfers whose choices depend on the point; may be null
};

/// The time for a batch according to the machine's limits; `auto` compares these times.
struct BatchTime {
  /// Time until the next batch can follow: the longest of the times that the worker's thread, the bus and the GPU need.
  double busy_ns;
  /// Time from the first call until the results have arrived, with nothing else in flight.
  double lone_ns;
};

struct TransferEntry {
  std::string description;
  HostMemory memory;            ///< kind of memory that its batches need
  std::vector<Axis> axes = {};  ///< the transfer's own axes
  /// Maximum number of batches in flight.
  std::function<unsigned(const Point&)> depth;
  std::function<std::unique_ptr<Transfer>(const TransferConfig&)> make;
  /// States the GPU limits that bound the transfer at a point.
  std::function<void(const BoundedPoint&, Bounds&)> bounds = {};
  /// Reason why the transfer cannot run on this device; empty if it can.
  std::function<std::string(const DeviceInfo&)> why_unsupported = {};
  /// Returns nothing if the required limits are unknown. Without this function, `auto` never chooses the transfer.
  std::function<std::optional<BatchTime>(const BoundedPoint&, const Limits&)> batch_time = {};
  /// Settings of the transfer's own axes that `auto` compares for lone messages, in addition to the defaults.
  std::vector<Values> alone = {};
  /// The transfer's own axes that affect its speed, with the values that a search for the best settings tries.
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

#pragma once
#include <functional>
#include <memory>
#include <string>

#include "common/axes.hpp"
#include "common/device/device.hpp"
#include "common/message/message.hpp"
#include "common/message/stage_recorder.hpp"
#include "common/payload/payloads.hpp"
#include "common/registry.hpp"

namespace feedrate {

/// The GPU's work on a message, and the host's check of the result.
class Workload : public Kernel, public Payloads {
 public:
  using KernelRecorder = StageRecorder;

  virtual std::size_t result_bytes(std::size_t payload) const = 0;
  /// If the size is not allowed, returns the required sizes ("NAME needs a multiple of 16 bytes"); otherwise an empty
  /// string.
  virtual std::string why_unsupported(std::size_t payload) const = 0;
  /// Prepares the data for checking messages of this size, so that this takes no time during a measurement. May take a
  /// second or more. Must not be called while other threads use this object.
  virtual void prepare(std::size_t /*payload*/) {}
  /// Computes the result of a payload with plain code.
  virtual void reference(const std::byte* payload, std::size_t bytes, std::byte* result) const = 0;
  /// Whether part of a result agrees with the same part of the reference. The part starts at the beginning of a float.
  virtual bool same(const std::byte* expected, const std::byte* found, std::size_t bytes) const = 0;
  /// Whether results and their checksums must match the reference's bit for bit.
  virtual bool exact() const = 0;
};

struct WorkloadEntry {
  std::string description;
  /// Makes the workload from the values of its axes.
  std::function<std::unique_ptr<Workload>(const Values&)> make;
  std::vector<Axis> axes = {};  ///< the workload's own axes
};
using Workloads = Registry<WorkloadEntry>;

}  // namespace feedrate

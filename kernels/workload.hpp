#pragma once
#include <functional>
#include <memory>
#include <string>

#include "common/axes.hpp"
#include "common/device/device.hpp"
#include "common/message/message.hpp"
#include "common/message/stage_marks.hpp"
#include "common/registry.hpp"
#include "common/payload/payloads.hpp"

namespace feedrate {

/// What the GPU does with a message, and how the host knows that it did.
class Workload : public Kernel, public Payloads {
 public:
  using KernelMarks = StageMarks;

  virtual std::size_t result_bytes(std::size_t payload) const = 0;
  /// What sizes it needs ("NAME needs a multiple of 16 bytes") when this is none of them; else empty.
  virtual std::string refuse(std::size_t payload) const = 0;
  /// Makes what checking messages of this size needs, so that it need not be made while they are timed. May take a
  /// second or more; not while other threads use this.
  virtual void prepare(std::size_t /*payload*/) {}
  /// The result of a payload, by plain code.
  virtual void reference(const std::byte* payload, std::size_t bytes, std::byte* result) const = 0;
  /// Whether a part of a result, from a float's beginning on, is what the reference made of it.
  virtual bool same(const std::byte* expected, const std::byte* found, std::size_t bytes) const = 0;
  /// Whether results are the reference's bit for bit, and so are their checksums.
  virtual bool exact() const = 0;
};

struct WorkloadEntry {
  std::string description;
  /// From the values of its own axes.
  std::function<std::unique_ptr<Workload>(const Values&)> make;
  std::vector<Axis> axes = {};  ///< of its own
};
using Workloads = Registry<WorkloadEntry>;

}  // namespace feedrate

#pragma once
#include <functional>
#include <memory>
#include <string>

#include "common/axes.hpp"
#include "common/device/device.hpp"
#include "common/message/message.hpp"
#include "common/message/stage_marks.hpp"
#include "common/registry.hpp"
#include "kernels/payload/runs.hpp"

namespace feedrate {

/// What the GPU does with a message, and how the host knows that it did. Payloads follow from a seed and the message's
/// id alone, so any thread can make a payload again and check its result without having kept it.
class Workload : public Kernel {
 public:
  using KernelMarks = StageMarks;

  virtual std::size_t result_bytes(std::size_t payload) const = 0;
  /// Why messages of this size can't be; empty when they can.
  virtual std::string refuse(std::size_t payload) const = 0;
  /// Makes what checking messages of this size needs, so that it need not be made while they are timed. May take a
  /// second or more; not while other threads use this.
  virtual void prepare(std::size_t /*payload*/) {}
  /// In a few words, for the row.
  virtual std::string how_checked(std::size_t payload) const = 0;
  /// Writes the payload and the header of every message; ids count up from `first_id`.
  virtual void fill(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages) const = 0;
  /// Whether all `results` are what the reference makes of the messages whose ids they carry. Ids that do not count up
  /// are left in `ids`, as many as there are results. What it says of ids is what was compared, and so can be counted
  /// whatever becomes of the slots. Looks at every result even when an earlier one is wrong.
  virtual Checked check(std::uint64_t seed, std::size_t payload, ConstMessages results, std::uint64_t* ids) const = 0;
  /// How `result`, the first of these, differs from what the reference makes of the message `id`, in a few words.
  virtual std::string difference(std::uint64_t seed, std::uint64_t id, std::size_t payload,
                                 const ConstMessages& result) const = 0;
  /// Whether `result`, the first of these, is that of the message `id`.
  bool matches(std::uint64_t seed, std::uint64_t id, std::size_t payload, const ConstMessages& result) const {
    std::uint64_t found = 0;
    const Checked checked = check(seed, payload, result.first(1), &found);
    return checked.right && (checked.consecutive ? checked.first_id : found) == id;
  }
};

struct WorkloadEntry {
  std::string description;
  /// From the values of its own axes.
  std::function<std::unique_ptr<Workload>(const Values&)> make;
  std::vector<Axis> axes = {};  ///< of its own
};
using Workloads = Registry<WorkloadEntry>;

}  // namespace feedrate

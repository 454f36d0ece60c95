#include <cstring>

#include "variants/feeding/transfers/bounds.hpp"
#include "variants/feeding/transfers/grouped.hpp"

namespace feedrate {
namespace {

/// A group's messages, side by side in device memory. One call copies the group's pieces in, one kernel processes all
/// of them, and another call copies the results to each batch's place.
struct SideBySide {
  Buffer in, out;                  ///< in device memory, for one group
  Buffer staging_in, staging_out;  ///< pinned; for one gathered copy
  std::vector<Copy> copies_in, copies_out;
  std::size_t messages = 0;
};

class BatchedCopy final : public Grouped<BatchedCopy, SideBySide> {
 public:
  struct Options {
    std::string pieces = "auto";
  };
  static const Axes<Options>& piece_axes() {
    static const auto kAxes =
        Axes<Options>().word("pieces", &Options::pieces, {"auto", "call", "staging"},
                             "how a group's pieces are copied: by one batched call, or gathered in pinned memory and "
                             "copied as one; auto = the call if the device supports it");
    return kAxes;
  }

  explicit BatchedCopy(const TransferConfig& config) : Grouped(config) {
    const std::string pieces = piece_axes().of(config.own).pieces;
    staged_ = pieces == "staging" || (pieces == "auto" && !config.device.copies_in_batches());
    for (Group& group : groups_) {
      SideBySide& own = group.own;
      own.in = config.device.allocate_device(max_messages() * config.in_stride);
      own.out = config.device.allocate_device(max_messages() * config.out_stride);
      if (!staged_) continue;
      own.staging_in = config.device.allocate_host(max_messages() * config.in_stride, HostMemory::pinned);
      own.staging_out = config.device.allocate_host(max_messages() * config.out_stride, HostMemory::pinned);
    }
  }
  Choices choices() const override {
    Choices all = Grouped::choices();
    all["pieces"] = staged_ ? "staging" : "call";
    return all;
  }

  void add(Group& group, const Batch& batch) {
    SideBySide& own = group.own;
    const std::size_t in_at = own.messages * batch.in.stride, in_bytes = batch.in.count * batch.in.stride;
    const std::size_t out_at = own.messages * batch.out.stride, out_bytes = batch.out.count * batch.out.stride;
    own.messages += batch.in.count;
    if (staged_) {
      std::memcpy(own.staging_in.data() + in_at, batch.in.base, in_bytes);
    } else {
      own.copies_in.push_back({own.in.data() + in_at, batch.in.base, in_bytes});
    }
    own.copies_out.push_back({batch.out.base, own.out.data() + out_at, out_bytes});
  }
  void launch(Group& group) {
    SideBySide& own = group.own;
    Stream& stream = *group.stream;
    if (staged_) {
      stream.copy_to_device(own.in.data(), own.staging_in.data(), own.messages * config_.in_stride);
    } else {
      stream.copy_batch(own.copies_in, Direction::to_device);
    }
    stream.launch(config_.workload, all_of(group, own.messages, own.in, own.out), config_.block);
    if (staged_) {
      stream.copy_to_host(own.staging_out.data(), own.out.data(), own.messages * config_.out_stride);
    } else {
      stream.copy_batch(own.copies_out, Direction::to_host);
      own.copies_out.clear();
    }
    own.copies_in.clear();
    own.messages = 0;
  }
  void finish(Group& group) {
    if (!staged_) return;
    SideBySide& own = group.own;
    for (const Copy& copy : own.copies_out) {
      std::memcpy(copy.to, own.staging_out.data() + (copy.from - own.out.data()), copy.bytes);
    }
    own.copies_out.clear();
  }

 private:
  bool staged_;
};

const TransferRegistration registered(
    "batched_copy",
    {.description = "one batched copy each way per group of batches, with one kernel in between",
     .memory = HostMemory::pinned,
     .axes = joined(BatchedCopy::axes().list(), BatchedCopy::piece_axes().list()),
     .depth = BatchedCopy::depth,
     .make = make_transfer<BatchedCopy>,
     .bounds = [](const BoundedPoint& bounded,
                  Bounds& bounds) { limit_by_copies(bounded, bounds, BatchedCopy::coalesced(bounded.point)); },
     .batch_time = [](const BoundedPoint& bounded, const Limits& limits) -> std::optional<BatchTime> {
       auto batch_time = batch_time_of_copies(bounded, limits, BatchedCopy::coalesced(bounded.point));
       const auto copies = value_of(limits, "batched_copies_per_second");
       // One call makes many copies, but each copy still takes time. Several workers together are faster, so this is
       // not a bound on a point.
       if (batch_time && copies) batch_time->busy_ns = std::max(batch_time->busy_ns, 1e9 / *copies);
       return batch_time;
     },
     .search = BatchedCopy::search()});

}  // namespace
}  // namespace feedrate

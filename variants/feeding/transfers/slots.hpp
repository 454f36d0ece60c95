#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "variants/feeding/transfer.hpp"
#include "variants/feeding/transfers/in_flight.hpp"

namespace feedrate {

/// Buffers in device memory that batches use in turn, and one stream for each of the three steps: copies in, kernels
/// and copies out. Events order the steps: a kernel waits until its buffer is filled, a copy out waits until the kernel
/// has ended, and a step that writes a buffer waits until the previous contents have been read. So the host can queue
/// twice as many batches as there are buffers and never waits.
class SlotTransfer final : public Transfer {
 public:
  static constexpr unsigned kQueuedPerSlot = 2;

  SlotTransfer(const TransferConfig& config, unsigned slots)
      : config_(config),
        slots_(slots),
        in_flight_(config, {.copies = true}, 1, std::size_t{slots} * kQueuedPerSlot),
        in_(config.device.stream()),
        work_(config.device.stream()) {
    for (Slot& slot : slots_) {
      slot.filled = config.device.event();
      slot.worked = config.device.event();
      slot.emptied = config.device.event();
      slot.in = config.device.allocate_device(config.max_messages * config.in_stride);
      slot.out = config.device.allocate_device(config.max_messages * config.out_stride);
    }
  }

  bool submit(const Batch& batch) override {
    auto* place = in_flight_.free_place();
    if (place == nullptr) return false;
    Stream& out = *place->stream;
    Slot& slot = slots_[begun_++ % slots_.size()];
    // In the first round the event was never recorded, so this does not wait.
    in_->wait(*slot.worked);
    in_->copy_to_device(slot.in.data(), batch.in.base, batch.in.count * batch.in.stride);
    if (batch.timed) in_->record(*place->copied_in);
    in_->record(*slot.filled);

    work_->wait(*slot.filled);
    work_->wait(*slot.emptied);
    work_->launch(config_.workload, view(slot.in.data(), slot.out.data(), batch), config_.block);
    work_->record(*slot.worked);

    out.wait(*slot.worked);
    out.copy_to_host(batch.out.base, slot.out.data(), batch.out.count * batch.out.stride);
    out.record(*slot.emptied);
    in_flight_.begin(*place, batch);
    return true;
  }
  std::optional<Batch> poll() override { return in_flight_.poll(); }

 private:
  struct Slot {
    std::unique_ptr<Event> filled, worked, emptied;
    Buffer in, out;
  };

  TransferConfig config_;
  std::vector<Slot> slots_;
  std::uint64_t begun_ = 0;
  InFlight in_flight_;                 // with the stream of copies out
  std::unique_ptr<Stream> in_, work_;  // last: as in_flight_, their destructors wait for work that uses the slots
};

}  // namespace feedrate

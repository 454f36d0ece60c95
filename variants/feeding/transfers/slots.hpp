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
        queued_(std::size_t{slots} * kQueuedPerSlot),
        in_(config.device.stream()),
        work_(config.device.stream()),
        out_(config.device.stream()) {
    for (Slot& slot : slots_) {
      slot.filled = config.device.event();
      slot.worked = config.device.event();
      slot.emptied = config.device.event();
      slot.in = config.device.allocate_device(config.max_messages * config.in_stride);
      slot.out = config.device.allocate_device(config.max_messages * config.out_stride);
    }
    for (Queued& each : queued_) {
      each.done = config.device.event();
      each.copied_in = config.device.event(true);
      each.copied_out = config.device.event(true);
    }
  }

  bool submit(const Batch& batch) override {
    if (begun_ - ended_ == queued_.size()) return false;
    Queued& queued = queued_[begun_ % queued_.size()];
    Slot& slot = slots_[begun_ % slots_.size()];
    // In the first round the event was never recorded, so this does not wait.
    in_->wait(*slot.worked);
    in_->copy_to_device(slot.in.data(), batch.in.base, batch.in.count * batch.in.stride);
    if (batch.timed) in_->record(*queued.copied_in);
    in_->record(*slot.filled);

    work_->wait(*slot.filled);
    work_->wait(*slot.emptied);
    work_->launch(config_.workload, view(slot.in.data(), slot.out.data(), batch), config_.block);
    work_->record(*slot.worked);

    out_->wait(*slot.worked);
    out_->copy_to_host(batch.out.base, slot.out.data(), batch.out.count * batch.out.stride);
    if (batch.timed) out_->record(*queued.copied_out);
    out_->record(*slot.emptied);
    out_->record(*queued.done);
    queued.batch = batch;
    ++begun_;
    return true;
  }
  std::optional<Batch> poll() override {
    if (ended_ == begun_) return std::nullopt;
    Queued& oldest = queued_[ended_ % queued_.size()];
    if (!oldest.done->ready()) return std::nullopt;
    ++ended_;
    if (oldest.batch.timed) {
      oldest.batch.copied_in = oldest.copied_in->ready_ns();
      oldest.batch.copied_out = oldest.copied_out->ready_ns();
    }
    return oldest.batch;
  }

 private:
  struct Slot {
    std::unique_ptr<Event> filled, worked, emptied;
    Buffer in, out;
  };
  struct Queued {
    std::unique_ptr<Event> done, copied_in, copied_out;
    Batch batch;
  };

  TransferConfig config_;
  std::vector<Slot> slots_;
  std::vector<Queued> queued_;
  std::uint64_t begun_ = 0, ended_ = 0;
  std::unique_ptr<Stream> in_, work_, out_;  // last: their destructors wait for work that uses the slots
};

}  // namespace feedrate

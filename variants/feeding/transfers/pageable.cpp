#include "variants/feeding/transfer.hpp"
#include "variants/feeding/transfers/in_flight.hpp"

namespace feedrate {
namespace {

/// The simplest method: ordinary host memory, one batch at a time, and the host waits for every step. This is the
/// typical first version and the baseline for the other transfers.
class Pageable final : public Transfer {
 public:
  explicit Pageable(const TransferConfig& config)
      : config_(config),
        copied_in_(config.device.event(true)),
        copied_out_(config.device.event(true)),
        in_(config.device.allocate_device(config.max_messages * config.in_stride)),
        out_(config.device.allocate_device(config.max_messages * config.out_stride)),
        stream_(config.device.stream()) {}

  bool submit(const Batch& batch) override {
    if (finished_) return false;
    stream_->copy_to_device(in_.data(), batch.in.base, batch.in.count * batch.in.stride);
    if (batch.timed) stream_->record(*copied_in_);
    stream_->launch(config_.workload, view(in_.data(), out_.data(), batch), config_.block);
    stream_->copy_to_host(batch.out.base, out_.data(), batch.out.count * batch.out.stride);
    if (batch.timed) stream_->record(*copied_out_);
    stream_->synchronize();
    finished_ = batch;
    if (batch.timed) {
      finished_->copied_in = copied_in_->ready_ns();
      finished_->copied_out = copied_out_->ready_ns();
    }
    return true;
  }
  std::optional<Batch> poll() override { return std::exchange(finished_, std::nullopt); }

 private:
  TransferConfig config_;
  std::unique_ptr<Event> copied_in_, copied_out_;
  Buffer in_, out_;
  std::optional<Batch> finished_;
  std::unique_ptr<Stream> stream_;  // last: after a failed call the stream may still use the buffers
};

const TransferRegistration registered(
    "pageable", {.description = "synchronous copies from and to ordinary memory, one batch at a time",
                 .memory = HostMemory::pageable,
                 .depth = [](const Point&) { return 1u; },
                 .make = make_transfer<Pageable>,
                 .bounds =
                     [](const BoundedPoint& bounded, Bounds& bounds) {
                       bounds.time("copy_launch_copy_ns");
                       bounds.bytes("copy_engine_both_bytes_per_second", bounded.slot());
                       // Each batch completes before the next one starts.
                       bounds.rate(batches_at_once(bounded.point) / floor_of("copy_launch_copy_ns"));
                     },
                 .search = {{"block", {"128", "256", "512", "1024"}}}});

}  // namespace
}  // namespace feedrate

// A transfer in one file, with its own axis.
#include "variants/feeding/transfer.hpp"
#include "variants/feeding/transfers/in_flight.hpp"

namespace feedrate {
namespace {

struct Options {
  unsigned copies = 1;
};
const Axes<Options>& own_axes() {
  static const auto kAxes = Axes<Options>().number("copies-each", &Options::copies, {1, 8},
                                                   "number of times a batch is copied to the device");
  return kAxes;
}

/// Copies each batch to the device `copies-each` times and waits for the results.
class Relay final : public Transfer {
 public:
  explicit Relay(const TransferConfig& config)
      : config_(config),
        copies_(own_axes().of(config.own).copies),
        in_(config.device.allocate_device(config.max_messages * config.in_stride)),
        out_(config.device.allocate_device(config.max_messages * config.out_stride)),
        stream_(config.device.stream()) {}
  bool submit(const Batch& batch) override {
    if (finished_) return false;
    for (unsigned i = 0; i < copies_; ++i) {
      stream_->copy_to_device(in_.data(), batch.in.base, batch.in.count * batch.in.stride);
    }
    stream_->launch(config_.workload, view(in_.data(), out_.data(), batch), config_.block);
    stream_->copy_to_host(batch.out.base, out_.data(), batch.out.count * batch.out.stride);
    stream_->synchronize();
    finished_ = batch;
    return true;
  }
  std::optional<Batch> poll() override { return std::exchange(finished_, std::nullopt); }

 private:
  TransferConfig config_;
  unsigned copies_;
  Buffer in_, out_;
  std::optional<Batch> finished_;
  std::unique_ptr<Stream> stream_;  // destroyed first: after a failed call it may still use the buffers
};

const TransferRegistration registered("relay", {.description = "example: copies a batch several times",
                                                .memory = HostMemory::pageable,
                                                .axes = own_axes().list(),
                                                .depth = [](const Point&) { return 1u; },
                                                .make = make_transfer<Relay>});

}  // namespace
}  // namespace feedrate

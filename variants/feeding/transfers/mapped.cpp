#include "variants/feeding/transfers/bounds.hpp"
#include "variants/feeding/transfers/in_flight.hpp"

namespace feedrate {
namespace {

/// No copies: the kernel reads messages from pinned host memory and writes results there. This saves two operations per
/// batch, which matters for small batches; SMs instead of copy engines wait for the bus.
class Mapped final : public StreamedTransfer {
 public:
  explicit Mapped(const TransferConfig& config) : StreamedTransfer(config, {}) {}

 private:
  void queue(InFlight::Place& place, const Batch& batch) override {
    place.stream->launch(config_.workload, view(batch.in.base, batch.out.base, batch), config_.block);
  }
};

const TransferRegistration registered(
    "mapped", {.description = "the kernel reads and writes pinned host memory directly, without copies",
               .memory = HostMemory::pinned,
               .axes = InFlight::axes().list(),
               .depth = InFlight::depth,
               .make = make_transfer<Mapped>,
               .bounds =
                   [](const BoundedPoint& bounded, Bounds& bounds) {
                     bounds.time("mapped_launch_sync_ns");
                     bounds.bytes("sm_echo_bytes_per_second", bounded.slot());
                     limit_by_launches(bounded, bounds);
                   },
               .batch_time = [](const BoundedPoint& bounded, const Limits& limits) -> std::optional<BatchTime> {
                 const auto launches = value_of(limits, "launch_per_second");
                 const auto lone = value_of(limits, "mapped_launch_sync_ns");
                 const auto bus = bus_ns(bounded, limits, "sm_echo_bytes_per_second");
                 if (!launches || !lone || !bus) return std::nullopt;
                 return BatchTime{std::max(1e9 / *launches, *bus), *lone + *bus};
               },
               .search = InFlight::search()});

}  // namespace
}  // namespace feedrate

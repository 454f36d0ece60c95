#include "variants/feeding/transfers/bounds.hpp"
#include "variants/feeding/transfers/in_flight.hpp"

namespace feedrate {
namespace {

/// Asynchronous copies between pinned and device memory, with batches spread over the streams: with three streams or
/// more, one batch is copied in while another is processed and a third is copied out.
class Pinned final : public StreamedTransfer {
 public:
  explicit Pinned(const TransferConfig& config) : StreamedTransfer(config, {.buffers = true, .copies = true}) {}

 private:
  void queue(InFlight::Place& place, const Batch& batch) override {
    place.stream->copy_to_device(place.in.data(), batch.in.base, batch.in.count * batch.in.stride);
    in_flight_.copied_in(place, batch);
    place.stream->launch(config_.workload, view(place.in.data(), place.out.data(), batch), config_.block);
    place.stream->copy_to_host(batch.out.base, place.out.data(), batch.out.count * batch.out.stride);
  }
};

const TransferRegistration registered(
    "pinned", {.description = "asynchronous copies from and to pinned memory over several streams",
               .memory = HostMemory::pinned,
               .axes = InFlight::axes().list(),
               .depth = InFlight::depth,
               .make = make_transfer<Pinned>,
               .bounds = [](const BoundedPoint& bounded, Bounds& bounds) { limit_by_copies(bounded, bounds); },
               .batch_time = [](const BoundedPoint& bounded,
                                const Limits& limits) { return batch_time_of_copies(bounded, limits); },
               .search = InFlight::search()});

}  // namespace
}  // namespace feedrate

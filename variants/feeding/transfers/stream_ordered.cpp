#include "variants/feeding/transfers/bounds.hpp"
#include "variants/feeding/transfers/in_flight.hpp"

namespace feedrate {
namespace {

/// Works like `pinned`, but each batch has its own memory of exactly its size from the device's pool, allocated and
/// freed in stream order. It shows the cost for a program that cannot keep buffers.
class StreamOrdered final : public StreamedTransfer {
 public:
  explicit StreamOrdered(const TransferConfig& config) : StreamedTransfer(config, {.copies = true}) {}

 private:
  void queue(InFlight::Place& place, const Batch& batch) override {
    Stream& stream = *place.stream;
    const std::size_t in_bytes = batch.in.count * batch.in.stride, out_bytes = batch.out.count * batch.out.stride;
    std::byte* const in = stream.allocate(in_bytes);
    std::byte* const out = stream.allocate(out_bytes);
    stream.copy_to_device(in, batch.in.base, in_bytes);
    in_flight_.copied_in(place, batch);
    stream.launch(config_.workload, view(in, out, batch), config_.block);
    stream.copy_to_host(batch.out.base, out, out_bytes);
    stream.free(in);
    stream.free(out);
  }
};

const TransferRegistration registered("stream_ordered",
                                      {.description = "as pinned, with each batch in memory from the device's pool, "
                                                      "allocated and freed in stream order",
                                       .memory = HostMemory::pinned,
                                       .axes = InFlight::axes().list(),
                                       .depth = InFlight::depth,
                                       .make = make_transfer<StreamOrdered>,
                                       .bounds = [](const BoundedPoint& bounded,
                                                    Bounds& bounds) { limit_by_copies(bounded, bounds); },
                                       .search = InFlight::search()});

}  // namespace
}  // namespace feedrate

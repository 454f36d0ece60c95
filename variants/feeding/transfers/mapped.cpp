#include "variants/feeding/transfers/floors.hpp"
#include "variants/feeding/transfers/in_flight.hpp"

namespace feedrate {
namespace {

/// No copies: the kernel reads messages from pinned host memory and writes results there. Saves two operations a batch,
/// which counts for small ones; the SMs wait on the bus instead of the copy engines.
class Mapped final : public Transfer {
 public:
  explicit Mapped(const TransferConfig& config) : config_(config), in_flight_(config, {}) {}

  bool submit(const Batch& batch) override {
    auto* place = in_flight_.free_place();
    if (place == nullptr) return false;
    place->stream->launch(config_.workload, view(batch.in.base, batch.out.base, batch), config_.block);
    in_flight_.begin(*place, batch);
    return true;
  }
  std::optional<Batch> poll() override { return in_flight_.poll(); }

 private:
  TransferConfig config_;
  InFlight in_flight_;
};

const TransferRegistration registered(
    "mapped", {.description = "the kernel reads and writes pinned host memory itself, no copies",
               .memory = HostMemory::pinned,
               .axes = InFlight::axes().list(),
               .depth = InFlight::depth,
               .make = make_transfer<Mapped>,
               .limits =
                   [](const Bounded& bounded, Limits& limits) {
                     limits.time("mapped_launch_sync_ns");
                     limits.bytes("sm_echo_bytes_per_second", bounded.slot());
                     limit_by_launches(bounded, limits);
                   },
               .effort = [](const Bounded& bounded, const Floors& floors) -> std::optional<Effort> {
                 const auto launches = floor_of(floors, "launch_per_second");
                 const auto lone = floor_of(floors, "mapped_launch_sync_ns");
                 const auto bus = bus_ns(bounded, floors, "sm_echo_bytes_per_second");
                 if (!launches || !lone || !bus) return std::nullopt;
                 return Effort{std::max(1e9 / *launches, *bus), *lone + *bus};
               },
               .search = InFlight::search()});

}  // namespace
}  // namespace feedrate

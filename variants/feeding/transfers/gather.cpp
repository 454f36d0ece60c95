#include <algorithm>
#include <cstring>

#include "variants/feeding/transfers/bounds.hpp"
#include "variants/feeding/transfers/grouped.hpp"

namespace feedrate {
namespace {

/// A group's messages, packed one after another in pinned memory without padding to slots, followed by a table of their
/// offsets. One copy moves everything to the device, one kernel works through the table, and one copy moves the results
/// to pinned memory, from which they are copied to their batches' slots.
struct Gathered {
  Buffer host_in, host_out;                                  ///< pinned
  Buffer in, out;                                            ///< in device memory
  std::vector<std::uint32_t> in_offsets{0}, out_offsets{0};  ///< in units of 16 bytes; one more entry than messages
};

class Gather final : public Grouped<Gather, Gathered> {
 public:
  explicit Gather(const TransferConfig& config) : Grouped(config) {
    const std::size_t table = 2 * (max_messages() + 1) * sizeof(std::uint32_t) + kUnit;
    const std::size_t in = max_messages() * config.in_stride + table, out = max_messages() * config.out_stride;
    for (Group& group : groups_) {
      Gathered& own = group.own;
      own.host_in = config.device.allocate_host(in, HostMemory::pinned);
      own.host_out = config.device.allocate_host(out, HostMemory::pinned);
      own.in = config.device.allocate_device(in);
      own.out = config.device.allocate_device(out);
      own.in_offsets.reserve(max_messages() + 1);
      own.out_offsets.reserve(max_messages() + 1);
    }
  }

  void add(Group& group, const Batch& batch) {
    Gathered& own = group.own;
    std::size_t in = own.in_offsets.back(), out = own.out_offsets.back();
    for (std::size_t i = 0; i < batch.in.count; ++i) {
      // The header may give a length greater than the slot: the kernel detects that and needs no further bytes.
      const std::size_t payload = std::min(payload_bytes(batch.in.header(i)), batch.in.stride - sizeof(Header));
      std::memcpy(own.host_in.data() + in * kUnit, batch.in.base + i * batch.in.stride, sizeof(Header) + payload);
      in += stride_of(payload) / kUnit;
      out += std::min(stride_of(config_.workload.result_bytes(payload)), batch.out.stride) / kUnit;
      own.in_offsets.push_back(static_cast<std::uint32_t>(in));
      own.out_offsets.push_back(static_cast<std::uint32_t>(out));
    }
  }
  void launch(Group& group) {
    Gathered& own = group.own;
    const std::size_t messages = own.in_offsets.size() - 1, entries = messages + 1;
    const std::size_t message_bytes = own.in_offsets.back() * kUnit, table_bytes = entries * sizeof(std::uint32_t);
    std::memcpy(own.host_in.data() + message_bytes, own.in_offsets.data(), table_bytes);
    std::memcpy(own.host_in.data() + message_bytes + table_bytes, own.out_offsets.data(), table_bytes);
    BatchView gathered = all_of(group, messages, own.in, own.out);
    gathered.in_offsets = reinterpret_cast<const std::uint32_t*>(own.in.data() + message_bytes);
    gathered.out_offsets = gathered.in_offsets + entries;
    Stream& stream = *group.stream;
    stream.copy_to_device(own.in.data(), own.host_in.data(), message_bytes + 2 * table_bytes);
    stream.launch(config_.workload, gathered, config_.block);
    stream.copy_to_host(own.host_out.data(), own.out.data(), own.out_offsets.back() * kUnit);
  }
  void finish(Group& group) {
    Gathered& own = group.own;
    std::size_t message = 0;
    for (const Batch& batch : group.batches) {
      for (std::size_t i = 0; i < batch.out.count; ++i, ++message) {
        const std::size_t begin = own.out_offsets[message] * kUnit, end = own.out_offsets[message + 1] * kUnit;
        std::memcpy(batch.out.base + i * batch.out.stride, own.host_out.data() + begin, end - begin);
      }
    }
    own.in_offsets.assign(1, 0);
    own.out_offsets.assign(1, 0);
  }

 private:
  static constexpr std::size_t kUnit = 16;
};

/// Time in which a worker's thread copies one message and its result once.
double host_ns(const BoundedPoint& bounded, double bytes_per_second) {
  return static_cast<double>(bounded.in + bounded.out) / bytes_per_second * 1e9;
}

const TransferRegistration registered(
    "gather",
    {.description =
         "many small messages packed into one copy with a table of offsets; results scattered from another copy",
     .memory = HostMemory::pinned,
     .axes = Gather::axes().list(),
     .depth = Gather::depth,
     .make = make_transfer<Gather>,
     .bounds = [](const BoundedPoint& bounded,
                  Bounds& bounds) { limit_by_copies(bounded, bounds, Gather::coalesced(bounded.point)); },
     .batch_time = [](const BoundedPoint& bounded, const Limits& limits) -> std::optional<BatchTime> {
       const auto copy = value_of(limits, "host_copy_bytes_per_second");
       auto batch_time = batch_time_of_copies(bounded, limits, Gather::coalesced(bounded.point));
       if (!batch_time || !copy) return std::nullopt;
       const double host = host_ns(bounded, *copy) * static_cast<double>(bounded.point.batch);
       return BatchTime{std::max(batch_time->busy_ns, host), batch_time->lone_ns + host};
     },
     .search = Gather::search()});

}  // namespace
}  // namespace feedrate

#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "variants/storage/nvme/controller.hpp"
#include "variants/storage/nvme/prp.hpp"

namespace feedrate::storage::nvme {

/// Reads and writes of a namespace over one I/O queue pair, with a PRP list per command. Used by one thread.
class Transfers {
 public:
  /// `max_bytes`: size of the largest command; it is lowered to what the controller accepts. `entries`: of each queue.
  Transfers(Controller& controller, const NamespaceInfo& name_space, std::uint32_t entries, std::size_t max_bytes)
      : space_(name_space),
        max_bytes_(std::min({max_bytes, controller.info().max_transfer, std::size_t{65536} * space_.block_bytes}) /
                   space_.block_bytes * space_.block_bytes),
        list_pages_(list_pages_of(pages_of(kPage - 1, max_bytes_))),
        lists_(controller.port(), std::max<std::size_t>(1, (entries - 1) * list_pages_ * kPage)),
        queues_(controller, entries) {}

  const NamespaceInfo& name_space() const { return space_; }
  /// Size of the largest command in bytes: a multiple of the block size.
  std::size_t max_bytes() const { return max_bytes_; }
  QueuePair& queue() { return queues_.queue(); }
  /// Writes a command between `blocks` blocks (at least 1, at most max_bytes()) at block `lba` and memory at bus
  /// address `bus` (a multiple of 4). Returns false if the queue has no room.
  bool submit(IoOpcode opcode, std::uint64_t lba, std::uint32_t blocks, std::uint64_t bus, std::uint64_t tag,
              std::uint64_t now_ns) {
    return queue().submit(tag, now_ns, [&](std::uint16_t id) {
      const std::size_t at = id * list_pages_ * kPage;
      Prps prps;
      const PrpList list{reinterpret_cast<std::uint64_t*>(lists_.data() + at), lists_.bus() + at, list_pages_};
      make_prps(bus, std::size_t{blocks} * space_.block_bytes, list, prps);
      return io_command(opcode, id, space_.id, lba, blocks, prps.first, prps.second);
    });
  }

 private:
  NamespaceInfo space_;
  std::size_t max_bytes_, list_pages_;
  DmaMemory lists_;
  IoQueues queues_;  // deleted first: until then the controller may read the lists
};

}  // namespace feedrate::storage::nvme

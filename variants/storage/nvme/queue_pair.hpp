#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "variants/storage/nvme/rings.hpp"

namespace feedrate::storage::nvme {

/// Memory and doorbells of a queue pair. Both queues have `entries` entries (2 to 65536), which are zero.
struct QueueMemory {
  Command* submissions = nullptr;
  CompletionEntry* completions = nullptr;
  std::uint32_t entries = 0;
  std::uint32_t *submission_doorbell = nullptr, *completion_doorbell = nullptr;
};

/// A command that has ended.
struct Ended {
  std::uint64_t tag = 0;  ///< as given to submit()
  Status status;
  std::uint32_t result = 0;  ///< dword 0 of the completion
};

/// A submission queue and its completion queue, with the commands in flight. Used by one thread at a time. Every field
/// that the controller returns is checked; if one is impossible, poll() throws Failure, and the queue pair can only be
/// deleted.
class QueuePair {
 public:
  /// `name`: of the device, for messages. `number`: the queues' identifier; 0 for the admin queues.
  QueuePair(std::string name, std::uint16_t number, const QueueMemory&);

  /// Maximum number of commands in flight.
  std::uint32_t depth() const { return static_cast<std::uint32_t>(flying_.size()); }
  std::uint32_t in_flight() const { return depth() - static_cast<std::uint32_t>(free_.size()); }
  /// Whether submit() would accept a command.
  bool has_room() const { return !free_.empty() && submissions_.room() != 0; }
  /// Writes the command that `make(id)` returns for the identifier `id` (below depth()), and counts its timeout from
  /// `now_ns`. Returns false if there is no room.
  template <class Make>
  bool submit(std::uint64_t tag, std::uint64_t now_ns, Make&& make) {
    if (!has_room()) return false;
    const std::uint16_t id = free_.back();
    const Command command = std::forward<Make>(make)(id);
    free_.pop_back();
    flying_[id] = {tag, now_ns, command.opcode(), true};
    submissions_.put(command);
    return true;
  }
  /// Announces the submitted commands to the controller.
  void flush() { submissions_.ring(); }
  /// Calls `use(Ended)` for each command that has ended; returns their number. Does not wait. Throws Failure if a
  /// completion is invalid.
  template <class Use>
  std::uint32_t poll(Use&& use) {
    Completed completed;
    std::uint32_t count = 0;
    while (count < depth() && completions_.poll(completed)) {
      ++count;
      use(accept(completed));
    }
    completions_.ring();
    return count;
  }
  /// Throws Failure if a command has been in flight for longer than `timeout_ns`.
  void check_timeouts(std::uint64_t now_ns, std::uint64_t timeout_ns) const;
  /// Tags of the commands in flight. After a reset of the controller they will not end.
  std::vector<std::uint64_t> outstanding() const;

 private:
  struct Flying {
    std::uint64_t tag = 0, since_ns = 0;
    std::uint8_t opcode = 0;
    bool flies = false;
  };
  Ended accept(const Completed&);
  std::string name_;
  std::uint16_t number_;
  SubmissionRing submissions_;
  CompletionRing completions_;
  std::vector<Flying> flying_;       // by identifier
  std::vector<std::uint16_t> free_;  // identifiers
};

}  // namespace feedrate::storage::nvme

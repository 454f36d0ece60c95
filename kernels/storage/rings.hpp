#pragma once
#include <cstddef>
#include <cstdint>

#include "common/device/device_clock.hpp"
#include "kernels/storage/lanes.hpp"
#include "kernels/storage/nvme.hpp"

/// Submission and completion queues that device threads fill and poll themselves. The queues lie in pinned memory and
/// follow NVMe's protocol: 64-byte commands, a doorbell with the tail, completions with a phase bit. Each thread has at
/// most one command in flight, and a queue has one entry more than threads, so neither ring can overflow.
namespace feedrate::storage::rings {

/// How a command ended, in one word.
struct Outcome {
  static constexpr std::uint64_t kEnded = std::uint64_t{1} << 63;
  static constexpr unsigned kStatusShift = 32;
  std::uint64_t word = 0;  ///< 0: in flight

  FEEDRATE_HD bool ended() const { return (word & kEnded) != 0; }
  FEEDRATE_HD nvme::Status status() const { return {static_cast<std::uint16_t>(word >> kStatusShift & 0x7FFF)}; }
  FEEDRATE_HD std::uint32_t bytes() const { return static_cast<std::uint32_t>(word); }
  static FEEDRATE_HD Outcome of(nvme::Status status, std::uint32_t bytes) {
    return {kEnded | std::uint64_t{status.bits & 0x7FFFu} << kStatusShift | bytes};
  }
};
/// Statuses of type 7 (vendor specific) carry an errno value.
inline constexpr std::uint16_t kErrnoStatus = 0x700;
/// No completion arrived within the time limit.
inline constexpr std::uint16_t kTimedOut = 0x7FFF;

/// Words of a queue in device memory, in separate cache lines.
struct QueueState {
  alignas(128) std::uint64_t tail;      ///< number of entries that threads have reserved
  alignas(128) std::uint64_t rung;      ///< number of entries that doorbells have announced
  alignas(128) std::uint64_t head;      ///< number of completions that have been read
  alignas(128) std::uint64_t draining;  ///< 1: some group reads completions
};

struct Queue {
  nvme::Command* submissions = nullptr;          ///< pinned memory
  nvme::CompletionEntry* completions = nullptr;  ///< pinned memory, zeroed
  std::uint32_t* tail_doorbell = nullptr;        ///< pinned memory
  std::uint32_t* head_doorbell = nullptr;        ///< pinned memory
  std::uint32_t entries = 0;                     ///< of each ring
  QueueState* state = nullptr;                   ///< device memory, zeroed
  std::uint64_t* outcomes = nullptr;             ///< device memory: an Outcome per command identifier
};

/// Adds the commands of those lanes whose `wants` is set, and rings the doorbell once. A command's identifier must be
/// below `entries - 1` and not in flight.
template <class Lanes>
FEEDRATE_HD void submit(const Lanes& lanes, const Queue& queue, bool wants, const nvme::Command& command) {
  const std::uint32_t mask = lanes.ballot(wants);
  if (mask == 0) return;
  std::uint64_t first = 0;
  if (lanes.rank() == 0) first = DeviceWords::add(queue.state->tail, bits_in(mask));
  first = lanes.from(0, first);
  const std::uint64_t end = first + bits_in(mask);
  if (wants) {
    DeviceWords::store(queue.outcomes[command.id()], 0);
    const std::uint64_t place = first + bits_in(mask & ((std::uint32_t{1} << lanes.rank()) - 1));
    queue.submissions[place % queue.entries] = command;
  }
  lanes.sync();  // the release below is cumulative: it covers all lanes' entries
  if (lanes.rank() == 0) {
    // Doorbells ring in the order of the entries, because a doorbell announces all entries before the tail.
    typename Lanes::Wait wait;
    while (DeviceWords::load(queue.state->rung) != first) wait();
    nvme::ring(*queue.tail_doorbell, static_cast<std::uint32_t>(end % queue.entries));
    DeviceWords::store(queue.state->rung, end);
  }
  lanes.sync();
}

/// Reads the completions that have arrived, for all threads, unless another group is doing so. Returns whether there
/// were any.
template <class Lanes>
FEEDRATE_HD bool drain(const Lanes& lanes, const Queue& queue) {
  QueueState& state = *queue.state;
  bool mine = false;
  if (lanes.rank() == 0) {
    mine = DeviceWords::peek(state.draining) == 0 && DeviceWords::exchange(state.draining, 1) == 0;
  }
  if (lanes.ballot(mine) == 0) return false;
  std::uint64_t head = lanes.from(0, DeviceWords::peek(state.head));
  const std::uint64_t begin = head;
  while (true) {
    const std::uint64_t number = head + lanes.rank();
    nvme::CompletionEntry& entry = queue.completions[number % queue.entries];
    const nvme::CompletionState found = nvme::load_state(entry);
    const bool fresh = found.phase() == (number / queue.entries % 2 == 0);
    const std::uint32_t stale = lanes.ballot(!fresh);
    const unsigned count = stale == 0 ? Lanes::kCount : lowest_bit(stale);
    if (lanes.rank() < count && found.id() < queue.entries - 1) {
      DeviceWords::store(queue.outcomes[found.id()], Outcome::of(found.status(), entry.result).word);
    }
    head += count;
    if (count < Lanes::kCount || head - begin >= queue.entries) break;
  }
  lanes.sync();
  if (lanes.rank() == 0) {
    if (head != begin) nvme::ring(*queue.head_doorbell, static_cast<std::uint32_t>(head % queue.entries));
    DeviceWords::store(state.head, head);
    DeviceWords::store(state.draining, 0);
  }
  lanes.sync();
  return head != begin;
}

/// Waits until the commands of those lanes whose `waits` is set have ended, at most `limit_ns`. After kTimedOut, the
/// controller may still complete the command, so its identifier and its memory must not be used again.
template <class Lanes>
FEEDRATE_HD Outcome await(const Lanes& lanes, const Queue& queue, bool waits, std::uint16_t id,
                          std::uint64_t limit_ns) {
  constexpr unsigned kPollsPerClockRead = 64;
  Outcome outcome;
  const std::uint64_t begin = device_clock_ns();
  typename Lanes::Wait wait;
  for (unsigned polls = 1;; ++polls) {
    if (waits && !outcome.ended()) outcome.word = DeviceWords::load(queue.outcomes[id]);
    if (lanes.ballot(waits && !outcome.ended()) == 0) return outcome;
    if (!drain(lanes, queue)) wait();
    if (polls % kPollsPerClockRead != 0) continue;
    const bool expired = lanes.from(0, static_cast<unsigned>(device_clock_ns() - begin > limit_ns)) != 0;
    if (expired && waits && !outcome.ended()) outcome = Outcome::of({kTimedOut}, 0);
  }
}

}  // namespace feedrate::storage::rings

#pragma once
#include <cstddef>
#include <cstdint>

#include "common/ring/memory.hpp"

/// The wire format of NVMe: entries of submission and completion queues, registers and doorbells, for host and device
/// code. Section numbers refer to the NVM Express Base Specification, revision 1.4. All values are little-endian.
namespace feedrate::storage::nvme {

/// Opcodes of admin commands (section 5).
enum class AdminOpcode : std::uint8_t {
  delete_submission_queue = 0x00,
  create_submission_queue = 0x01,
  delete_completion_queue = 0x04,
  create_completion_queue = 0x05,
  identify = 0x06,
  set_features = 0x09,
};
/// Opcodes of the NVM command set (section 6).
enum class IoOpcode : std::uint8_t { flush = 0x00, write = 0x01, read = 0x02 };

/// Values of Identify's CNS field, which selects the data structure to return (section 5.15.1).
enum class Identify : std::uint32_t { name_space = 0x00, controller = 0x01, active_namespaces = 0x02 };

inline constexpr std::uint32_t kNumberOfQueues = 0x07;  ///< feature identifier (section 5.21.1.7)
inline constexpr std::size_t kIdentifyBytes = 4096;

/// An entry of a submission queue (section 4.2). Metadata, fused commands and SGLs are not used.
struct alignas(64) Command {
  std::uint32_t opcode_and_id = 0;  ///< 7:0 opcode, 31:16 command identifier
  std::uint32_t namespace_id = 0;   ///< namespace identifier; 0 for commands without one
  std::uint64_t reserved = 0;
  std::uint64_t metadata = 0;
  std::uint64_t prp1 = 0;  ///< bus address of the first page of data; may begin inside the page (section 4.3)
  std::uint64_t prp2 = 0;  ///< bus address of the second page, or of the PRP list if there are more than two pages
  std::uint32_t dwords[6] = {};  ///< command dwords 10 to 15

  constexpr FEEDRATE_HD std::uint8_t opcode() const { return static_cast<std::uint8_t>(opcode_and_id); }
  constexpr FEEDRATE_HD std::uint16_t id() const { return static_cast<std::uint16_t>(opcode_and_id >> 16); }
};
static_assert(sizeof(Command) == 64);

constexpr FEEDRATE_HD std::uint32_t opcode_and_id(std::uint8_t opcode, std::uint16_t id) {
  return opcode | static_cast<std::uint32_t>(id) << 16;
}

/// A Read or Write command (sections 6.9 and 6.15). `blocks`: number of logical blocks, 1 to 65536.
constexpr FEEDRATE_HD Command io_command(IoOpcode opcode, std::uint16_t id, std::uint32_t namespace_id,
                                         std::uint64_t lba, std::uint32_t blocks, std::uint64_t prp1,
                                         std::uint64_t prp2) {
  Command command;
  command.opcode_and_id = opcode_and_id(static_cast<std::uint8_t>(opcode), id);
  command.namespace_id = namespace_id;
  command.prp1 = prp1;
  command.prp2 = prp2;
  command.dwords[0] = static_cast<std::uint32_t>(lba);
  command.dwords[1] = static_cast<std::uint32_t>(lba >> 32);
  command.dwords[2] = (blocks - 1) & 0xFFFF;  // a 0's based value
  return command;
}
/// A Flush command (section 6.8): completed writes of the namespace become durable.
constexpr FEEDRATE_HD Command flush_command(std::uint16_t id, std::uint32_t namespace_id) {
  Command command;
  command.opcode_and_id = opcode_and_id(static_cast<std::uint8_t>(IoOpcode::flush), id);
  command.namespace_id = namespace_id;
  return command;
}

/// Why a command ended: the Status Field of a completion without its phase (section 4.6.1).
struct Status {
  std::uint16_t bits = 0;  ///< 7:0 status code, 10:8 status code type, 14 do not retry

  constexpr FEEDRATE_HD bool ok() const { return (bits & 0x7FF) == 0; }
  constexpr FEEDRATE_HD unsigned code() const { return bits & 0xFF; }
  constexpr FEEDRATE_HD unsigned type() const { return bits >> 8 & 7; }
  constexpr FEEDRATE_HD bool do_not_retry() const { return (bits >> 14 & 1) != 0; }
};
/// The type and code of a status as one number, for comparisons: 0xTCC.
constexpr FEEDRATE_HD unsigned type_and_code(Status status) { return status.bits & 0x7FFu; }
inline constexpr unsigned kLbaOutOfRange = 0x080;         ///< section 4.6.1.2.1
inline constexpr unsigned kAbortedSqDeletion = 0x008;     ///< section 4.6.1.2.1
inline constexpr unsigned kUnrecoveredReadError = 0x281;  ///< section 4.6.1.2.3

/// An entry of a completion queue (section 4.6). Its second half has the phase tag, so the host reads that half
/// atomically; the controller writes it last or together with the first half.
struct alignas(16) CompletionEntry {
  std::uint32_t result = 0;  ///< dword 0, specific to the command
  std::uint32_t reserved = 0;
  std::uint64_t state = 0;  ///< dwords 2 and 3
};
static_assert(sizeof(CompletionEntry) == 16);

/// The fields of CompletionEntry::state.
struct CompletionState {
  std::uint64_t bits = 0;

  /// Head of the submission queue: the controller has fetched the entries before it.
  constexpr FEEDRATE_HD std::uint16_t submission_head() const { return static_cast<std::uint16_t>(bits); }
  constexpr FEEDRATE_HD std::uint16_t submission_queue() const { return static_cast<std::uint16_t>(bits >> 16); }
  constexpr FEEDRATE_HD std::uint16_t id() const { return static_cast<std::uint16_t>(bits >> 32); }
  /// The phase tag: inverted on each lap of the queue. The first lap writes 1 to a queue that the host has zeroed.
  constexpr FEEDRATE_HD bool phase() const { return (bits >> 48 & 1) != 0; }
  constexpr FEEDRATE_HD Status status() const { return {static_cast<std::uint16_t>(bits >> 49)}; }
};
constexpr FEEDRATE_HD CompletionState completion_state(std::uint16_t submission_head, std::uint16_t submission_queue,
                                                       std::uint16_t id, bool phase, Status status) {
  return {submission_head | std::uint64_t{submission_queue} << 16 | std::uint64_t{id} << 32 |
          std::uint64_t{phase} << 48 | std::uint64_t{status.bits} << 49};
}
/// Reads an entry's second half; the first half may be read after it if the phase shows that the entry is new.
inline FEEDRATE_HD CompletionState load_state(CompletionEntry& entry) {
  return {SystemMemory::load_acquire(entry.state)};
}

/// Byte offsets of the controller's registers in BAR 0 (section 3.1).
enum class Register : std::uint32_t {
  capabilities = 0x00,      ///< CAP, 64 bits
  version = 0x08,           ///< VS
  mask_set = 0x0C,          ///< INTMS
  configuration = 0x14,     ///< CC
  status = 0x1C,            ///< CSTS
  admin_sizes = 0x24,       ///< AQA
  admin_submission = 0x28,  ///< ASQ, 64 bits
  admin_completion = 0x30,  ///< ACQ, 64 bits
};
inline constexpr std::uint32_t kDoorbells = 0x1000;

/// Byte offset of a queue's doorbell: the tail of submission queue `queue` (section 3.1.24), or the head of completion
/// queue `queue` (section 3.1.25). `stride`: Capabilities::doorbell_stride(), bytes.
constexpr FEEDRATE_HD std::uint32_t submission_doorbell(std::uint16_t queue, std::uint32_t stride) {
  return kDoorbells + 2 * queue * stride;
}
constexpr FEEDRATE_HD std::uint32_t completion_doorbell(std::uint16_t queue, std::uint32_t stride) {
  return kDoorbells + (2 * queue + 1u) * stride;
}
/// Writes a doorbell after all earlier writes of this thread, so that the controller finds the entries that the
/// doorbell announces. Correct for x86 and for GPUs; other CPUs need a stronger barrier before a store to a device.
inline FEEDRATE_HD void ring(std::uint32_t& doorbell, std::uint32_t value) {
  SystemMemory::store_release(doorbell, value);
}

/// Fields of the register CAP (section 3.1.1).
struct Capabilities {
  std::uint64_t bits = 0;

  constexpr std::uint32_t max_entries() const { return static_cast<std::uint32_t>(bits & 0xFFFF) + 1; }
  constexpr bool contiguous_queues() const { return (bits >> 16 & 1) != 0; }
  /// Longest time in milliseconds until the controller is ready, or no longer ready.
  constexpr std::uint32_t timeout_ms() const { return static_cast<std::uint32_t>(bits >> 24 & 0xFF) * 500; }
  constexpr std::uint32_t doorbell_stride() const { return 4u << (bits >> 32 & 0xF); }
  constexpr bool nvm_command_set() const { return (bits >> 37 & 1) != 0; }
  constexpr std::uint64_t min_page() const { return std::uint64_t{4096} << (bits >> 48 & 0xF); }
  constexpr std::uint64_t max_page() const { return std::uint64_t{4096} << (bits >> 52 & 0xF); }
};

/// Fields of the register CC (section 3.1.5).
inline constexpr std::uint32_t kEnable = 1;                 // EN
inline constexpr std::uint32_t kShutdownNormal = 1u << 14;  // SHN
inline constexpr std::uint32_t kShutdownMask = 3u << 14;
inline constexpr std::uint32_t kSubmissionEntryLog = 6u << 16;  // IOSQES: 64 bytes
inline constexpr std::uint32_t kCompletionEntryLog = 4u << 20;  // IOCQES: 16 bytes

/// Fields of the register CSTS (section 3.1.6).
struct ControllerStatus {
  std::uint32_t bits = 0;

  constexpr bool ready() const { return (bits & 1) != 0; }
  constexpr bool fatal() const { return (bits & 2) != 0; }
  constexpr bool shutdown_complete() const { return (bits >> 2 & 3) == 2; }
  /// A device that is gone reads as ones.
  constexpr bool gone() const { return bits == 0xFFFF'FFFF; }
};

}  // namespace feedrate::storage::nvme

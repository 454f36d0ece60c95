#include "tests/variants/storage/nvme/software_controller.hpp"

#include <algorithm>

namespace feedrate::test {

using namespace storage::nvme;

namespace {
constexpr std::size_t kRegisterBytes = 16384;
constexpr std::uint32_t kFatal = 2, kReady = 1;
constexpr Status kInvalidQueue{0x101}, kTransferError{0x004};

std::uint32_t at(Register which) { return static_cast<std::uint32_t>(which); }
template <class T>
void put(std::byte* data, std::size_t offset, T value) {
  std::memcpy(data + offset, &value, sizeof value);
}
}  // namespace

SoftwareController::SoftwareController(Faults faults, std::uint64_t seed)
    : faults_(faults), random_(seed), registers_(kRegisterBytes / 8), contents_(kBlocks << faults.block_log) {
  // MQES, CQR, TO (in 500 ms), CSS: the NVM command set.
  const std::uint64_t capabilities = (kEntries - 1) | 1u << 16 | (faults.never_ready ? 1u : 120u) << 24 | 1ull << 37;
  store(at(Register::capabilities), static_cast<std::uint32_t>(capabilities));
  store(at(Register::capabilities) + 4, static_cast<std::uint32_t>(capabilities >> 32));
  store(at(Register::version), 0x10400);
}
SoftwareController::~SoftwareController() { stop(); }

void SoftwareController::run() {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      step();
      std::this_thread::yield();
    }
  });
}
void SoftwareController::stop() { thread_ = {}; }

std::uint32_t SoftwareController::load(std::uint32_t offset) {
  return SystemMemory::load_acquire(*reinterpret_cast<std::uint32_t*>(registers().data() + offset));
}
void SoftwareController::store(std::uint32_t offset, std::uint32_t value) {
  SystemMemory::store_release(*reinterpret_cast<std::uint32_t*>(registers().data() + offset), value);
}

std::uint64_t SoftwareController::map(std::byte* data, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto bus = reinterpret_cast<std::uintptr_t>(data);
  mapped_[bus] = bytes;
  return bus;
}
void SoftwareController::unmap(std::uint64_t bus, std::size_t /*bytes*/) noexcept {
  const std::lock_guard lock(mutex_);
  mapped_.erase(bus);
}
std::size_t SoftwareController::mapped() const {
  const std::lock_guard lock(mutex_);
  return mapped_.size();
}
/// The memory at a bus address; null, and counted, if the device may not access all of it.
std::byte* SoftwareController::memory(std::uint64_t bus, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto after = mapped_.upper_bound(bus);
  if (bus_master_ && after != mapped_.begin()) {
    const auto& [start, size] = *std::prev(after);
    if (bus + bytes <= start + size) return reinterpret_cast<std::byte*>(bus);
  }
  ++bad_accesses_;
  return nullptr;
}

void SoftwareController::follow_configuration() {
  const std::uint32_t configuration = load(at(Register::configuration)), status = load(at(Register::status));
  const bool enabled = (configuration & kEnable) != 0;
  if (enabled && (status & (kReady | kFatal)) == 0 && !faults_.never_ready) {
    if (faults_.fatal_when_enabled) return store(at(Register::status), kFatal);
    const std::uint32_t sizes = load(at(Register::admin_sizes));
    const auto address = [&](Register low) {
      return load(at(low)) | static_cast<std::uint64_t>(load(at(low) + 4)) << 32;
    };
    submissions_[0] = {address(Register::admin_submission), (sizes & 0xFFF) + 1};
    completions_[0] = {address(Register::admin_completion), (sizes >> 16 & 0xFFF) + 1};
    store(at(Register::status), kReady);
  }
  if (!enabled && status != 0) {
    submissions_.clear();
    completions_.clear();
    pending_.clear();
    live_queues_ = 0;
    shut_down_ = false;
    for (std::uint32_t offset = kDoorbells; offset < kRegisterBytes; offset += 4) store(offset, 0);
    store(at(Register::status), 0);
  }
  if (enabled && (configuration & kShutdownMask) == kShutdownNormal && !shut_down_ && !faults_.never_shuts_down) {
    shut_down_ = true;
    ++shutdowns_;
    store(at(Register::status), kReady | 2u << 2);
  }
}

void SoftwareController::step() {
  follow_configuration();
  if ((load(at(Register::status)) & (kReady | kFatal)) != kReady) return;
  std::vector<std::uint16_t> numbers;
  for (const auto& [number, queue] : submissions_) numbers.push_back(number);
  bool fetched = false;
  for (const std::uint16_t number : numbers) fetched = fetch(number) || fetched;
  // Commands are held back while more arrive, so that they can be reordered.
  if (!fetched || pending_.size() > 24) complete_one();
}

bool SoftwareController::fetch(std::uint16_t number) {
  const auto found = submissions_.find(number);
  if (found == submissions_.end()) return false;  // an admin command has just deleted it
  Submissions& queue = found->second;
  if (queue.head == load(submission_doorbell(number, 4))) return false;
  const std::byte* const entry = memory(queue.bus + queue.head * sizeof(Command), sizeof(Command));
  if (entry == nullptr) return false;
  Command command;
  std::memcpy(&command, entry, sizeof command);
  queue.head = (queue.head + 1) % queue.size;
  if (number != 0) {
    pending_.push_back({number, command});
  } else if (++admins_ != faults_.lose_admin) {
    admin(command);
  }
  return true;
}

bool SoftwareController::complete_one() {
  if (pending_.empty()) return false;
  const std::size_t which = random_() % pending_.size();
  const Pending pending = pending_[which];
  const Completions& queue = completions_[submissions_[pending.queue].completions];
  if ((queue.tail + 1) % queue.size == load(completion_doorbell(submissions_[pending.queue].completions, 4))) {
    return false;  // the completion queue is full
  }
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(which));
  ++ios_;
  if (ios_ == faults_.fatal_after) store(at(Register::status), kReady | kFatal);
  if (ios_ == faults_.lose_io) return true;
  const Status status = ios_ == faults_.fail_io ? faults_.status : io(pending.command);
  const auto id = static_cast<std::uint16_t>(pending.command.id() + (ios_ == faults_.wrong_id ? 1000 : 0));
  post(pending.queue, id, status);
  return true;
}

void SoftwareController::post(std::uint16_t number, std::uint16_t id, Status status, std::uint32_t result) {
  const Submissions& from = submissions_[number];
  Completions& queue = completions_[from.completions];
  std::byte* const entry = memory(queue.bus + queue.tail * sizeof(CompletionEntry), sizeof(CompletionEntry));
  if (entry == nullptr) return;
  put(entry, 0, result);
  const std::uint64_t state =
      completion_state(static_cast<std::uint16_t>(from.head), number, id, queue.phase, status).bits;
  SystemMemory::store_release(*reinterpret_cast<std::uint64_t*>(entry + 8), state);
  if (++queue.tail == queue.size) {
    queue.tail = 0;
    queue.phase = !queue.phase;
  }
}

void SoftwareController::admin(const Command& command) {
  const auto number = static_cast<std::uint16_t>(command.dwords[0]);
  const std::uint32_t size = (command.dwords[0] >> 16) + 1;
  const bool valid = number != 0 && size >= 2 && size <= kEntries;
  Status status;
  std::uint32_t result = 0;
  switch (static_cast<AdminOpcode>(command.opcode())) {
    case AdminOpcode::identify:
      return identify(command);
    case AdminOpcode::set_features:
      result = 3 | 2u << 16;  // 4 submission queues, 3 completion queues
      break;
    case AdminOpcode::create_completion_queue:
      if (!valid || completions_.contains(number)) {
        status = kInvalidQueue;
      } else {
        completions_[number] = {command.prp1, size};
      }
      break;
    case AdminOpcode::create_submission_queue: {
      const auto completions = static_cast<std::uint16_t>(command.dwords[1] >> 16);
      if (!valid || submissions_.contains(number) || !completions_.contains(completions)) {
        status = kInvalidQueue;
      } else {
        submissions_[number] = {command.prp1, size, 0, completions};
        store(submission_doorbell(number, 4), 0);
        store(completion_doorbell(completions, 4), 0);
        ++live_queues_;
      }
      break;
    }
    case AdminOpcode::delete_submission_queue:
      if (number == 0 || submissions_.erase(number) == 0) status = kInvalidQueue;
      std::erase_if(pending_, [number](const Pending& pending) { return pending.queue == number; });
      break;
    case AdminOpcode::delete_completion_queue: {
      const bool used =
          std::ranges::any_of(submissions_, [number](const auto& queue) { return queue.second.completions == number; });
      if (number == 0 || used || completions_.erase(number) == 0) {
        status = kInvalidQueue;
      } else {
        --live_queues_;
      }
      break;
    }
  }
  post(0, command.id(), status, result);
}

void SoftwareController::identify(const Command& command) {
  std::byte* const data = memory(command.prp1, kIdentifyBytes);
  if (data == nullptr) return post(0, command.id(), kTransferError);
  std::memset(data, 0, kIdentifyBytes);
  switch (static_cast<Identify>(command.dwords[0])) {
    case Identify::controller:
      std::memset(data + 4, ' ', 68);
      std::memcpy(data + 24, "Software controller", 19);
      put(data, 77, static_cast<std::uint8_t>(kTransferLog));
      put(data, 512, std::uint8_t{0x66});
      put(data, 513, std::uint8_t{0x44});
      put(data, 516, std::uint32_t{4});
      break;
    case Identify::active_namespaces:
      put(data, 0, std::uint32_t{1});
      break;
    case Identify::name_space:
      put(data, 0, kBlocks);
      put(data, 25, std::uint8_t{1});
      put(data, 26, std::uint8_t{1});
      put(data, 128 + 4, faults_.block_log << 16);
      break;
  }
  post(0, command.id(), {});
}

Status SoftwareController::io(const Command& command) {
  const auto opcode = static_cast<IoOpcode>(command.opcode());
  if (opcode == IoOpcode::flush) return {};
  const std::uint64_t lba = command.dwords[0] | static_cast<std::uint64_t>(command.dwords[1]) << 32;
  const std::uint64_t blocks = (command.dwords[2] & 0xFFFF) + 1;
  if (command.namespace_id != 1) return {0x00B};
  if (lba > kBlocks || blocks > kBlocks - lba) return {kLbaOutOfRange};
  const std::size_t bytes = blocks << faults_.block_log;
  if (bytes > kPage << kTransferLog) return {0x002};
  const bool moved = each_part(command, bytes, opcode == IoOpcode::read, contents_.data() + (lba << faults_.block_log));
  return moved ? Status{} : kTransferError;
}

/// Moves data between the pages of a command and `data`.
bool SoftwareController::each_part(const Command& command, std::size_t bytes, bool to_host, std::byte* data) {
  std::uint64_t list = 0;
  for (std::size_t done = 0, page = 0; done < bytes; ++page) {
    std::uint64_t bus = command.prp1;
    if (page == 1 && bytes - done <= kPage) {
      bus = command.prp2;
    } else if (page != 0) {
      list = page == 1 ? command.prp2 : list + 8;
      const std::byte* entry = memory(list, 8);
      if (entry == nullptr) return false;
      std::memcpy(&bus, entry, 8);
      if (list % kPage == kPage - 8 && bytes - done > kPage) {
        list = bus;
        if ((entry = memory(list, 8)) == nullptr) return false;
        std::memcpy(&bus, entry, 8);
      }
    }
    if (page != 0 && bus % kPage != 0) return false;
    const std::size_t part = std::min(bytes - done, kPage - bus % kPage);
    std::byte* const host = memory(bus, part);
    if (host == nullptr) return false;
    std::memcpy(to_host ? host : data + done, to_host ? data + done : host, part);
    done += part;
  }
  return true;
}

}  // namespace feedrate::test

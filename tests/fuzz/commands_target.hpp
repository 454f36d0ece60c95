#pragma once
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "variants/storage/ring_controller.hpp"

namespace feedrate::test {

/// A file with zeros, without a name, opened for reading.
inline const storage::OpenFiles& foreign_file() {
  static const std::unique_ptr<Device> device = open_cpu_device();
  static const storage::OpenFiles files = [] {
    std::string path = "/tmp/feedrate-fuzz-XXXXXX";
    const int descriptor = ::mkstemp(path.data());
    if (descriptor < 0 || ::ftruncate(descriptor, 20'000) != 0) std::abort();
    ::close(descriptor);
    static const storage::File file{path, 20'000};
    storage::OpenFiles opened({.files = {&file, 1}, .device = *device});
    ::unlink(path.c_str());
    return opened;
  }();
  return files;
}

inline bool unique(std::span<const storage::nvme::Command> commands, std::uint16_t id) {
  return std::ranges::count(commands, id, &storage::nvme::Command::id) == 1;
}

/// Gives commands and doorbell values, as a faulty device could write them, to the controller in software. The input is
/// one byte for the tail doorbell, one for the head doorbell, then commands; an address is relative to the staging
/// memory if the command's reserved word is even. Aborts unless each command is completed once, invalid commands are
/// rejected, and no other memory is written.
inline void serve_foreign_commands(const std::uint8_t* data, std::size_t size) {
  using namespace storage;
  constexpr std::uint32_t kEntries = 8;
  constexpr std::size_t kStaging = 16'384, kMargin = 65'536;
  constexpr std::uint64_t kPatience = 60'000'000'000;  // ns
  if (size < 2) return;
  std::array<nvme::Command, kEntries> commands{};
  std::array<nvme::CompletionEntry, kEntries> completions{};
  std::vector<std::byte> memory(2 * kMargin + kStaging, std::byte{0x5A});
  std::byte* const staging = memory.data() + kMargin;
  const std::size_t count = std::min<std::size_t>((size - 2) / sizeof(nvme::Command), kEntries - 1);
  std::memcpy(commands.data(), data + 2, count * sizeof(nvme::Command));
  for (nvme::Command& command : commands) {
    if (command.reserved % 2 == 0) command.prp1 += reinterpret_cast<std::uint64_t>(staging);
  }
  std::uint32_t tail = 0, head = data[1] < 200 ? 0 : data[1] - 200;
  rings::Queue queue;
  queue.submissions = commands.data();
  queue.completions = completions.data();
  queue.tail_doorbell = &tail;
  queue.head_doorbell = &head;
  queue.entries = kEntries;
  std::size_t posted = 0;
  bool failed = false;
  {
    RingController controller(
        {.files = foreign_file(), .queues = {&queue, 1}, .staging = {staging, kStaging}, .depth = 3});
    const std::uint32_t value = data[0] < 128 ? static_cast<std::uint32_t>(count) : data[0] - 128;
    nvme::ring(tail, value);
    const std::uint64_t begin = now_ns();
    while (!failed && posted < value) {
      if (nvme::load_state(completions[posted]).phase()) {
        ++posted;
        continue;
      }
      try {
        controller.check();
      } catch (const Failure&) {
        failed = true;
      }
      if (now_ns() - begin > kPatience) std::abort();
      std::this_thread::yield();
    }
    if (!failed && (value >= kEntries || (head >= kEntries && value != 0))) std::abort();
  }
  const auto begin = reinterpret_cast<std::uint64_t>(staging);
  const auto invalid = [&](const nvme::Command& command) {
    const std::uint64_t bytes = (command.dwords[2] & 0xFFFF) + 1;
    const bool known = command.opcode() == 1 || command.opcode() == 2;
    const bool inside = bytes <= kStaging && command.prp1 >= begin && command.prp1 <= begin + kStaging - bytes;
    return !known || command.namespace_id != 1 || !inside || (command.dwords[1] >> 31) != 0;
  };
  for (std::size_t i = 0; i < posted && !failed; ++i) {
    const nvme::CompletionState state{completions[i].state};
    bool found = false, rejected = false;
    for (std::size_t n = 0; n < kEntries; ++n) {
      if (commands[n].id() != state.id()) continue;
      found = true;
      rejected = rejected || invalid(commands[n]);
    }
    if (!found || (state.status().ok() && rejected && unique(commands, state.id()))) std::abort();
    if (completions[i].result > kStaging) std::abort();
  }
  const auto untouched = [](std::byte value) { return value == std::byte{0x5A}; };
  if (!std::all_of(memory.data(), staging, untouched)) std::abort();
  if (!std::all_of(staging + kStaging, memory.data() + memory.size(), untouched)) std::abort();
}

}  // namespace feedrate::test

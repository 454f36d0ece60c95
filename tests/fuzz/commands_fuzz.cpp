// libFuzzer target; tests/fuzz/run.sh builds and runs it. The controller in software meets commands and doorbell values
// as a faulty device could write them: each command is completed once, and no other memory is written.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "variants/storage/ring_controller.hpp"

namespace {

using namespace feedrate;
using namespace feedrate::storage;

constexpr std::uint32_t kEntries = 8;
constexpr std::size_t kFile = 20'000, kStaging = 16'384, kMargin = 65'536;
constexpr std::uint64_t kPatience = 20'000'000'000;  // ns

File made_file() {
  std::string path = "/tmp/feedrate-fuzz-XXXXXX";
  const int descriptor = ::mkstemp(path.data());
  if (descriptor < 0 || ::ftruncate(descriptor, kFile) != 0) std::abort();
  ::close(descriptor);
  return {path, kFile};
}

/// One byte for the tail doorbell, one for the head doorbell, then commands. An address is relative to the staging
/// memory if the command's reserved word is even.
void serve(const std::uint8_t* data, std::size_t size, const OpenFiles& files) {
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
    RingController controller({.files = files, .queues = {&queue, 1}, .staging = {staging, kStaging}, .depth = 3});
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
  for (std::size_t i = 0; i < posted && !failed; ++i) {
    const nvme::CompletionState state{completions[i].state};
    const auto same = [&](const nvme::Command& command) { return command.id() == state.id(); };
    if (std::none_of(commands.begin(), commands.end(), same)) std::abort();
    if (completions[i].result > 65'536) std::abort();
  }
  const auto untouched = [](std::byte value) { return value == std::byte{0x5A}; };
  if (!std::all_of(memory.data(), staging, untouched)) std::abort();
  if (!std::all_of(staging + kStaging, memory.data() + memory.size(), untouched)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const File file = made_file();
  static const auto device = open_cpu_device();
  static const OpenFiles files({.files = {&file, 1}, .device = *device});
  if (size >= 2) serve(data, size, files);
  return 0;
}

#include "variants/storage/mapping_trial.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "common/own_executable.hpp"
#include "libraries/storage/files.hpp"
#include "variants/storage/guarded_mapping.hpp"

namespace feedrate::storage {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTrialLimit{30};  // opening a GPU takes several seconds on large hosts
constexpr std::chrono::seconds kKillLimit{1};    // a process inside a hung driver cannot be killed
constexpr std::uint64_t kTrialBytes = std::uint64_t{1} << 20;

bool ends_within(pid_t process, std::chrono::seconds limit, int& status) {
  const auto deadline = Clock::now() + limit;
  while (true) {
    const pid_t found = ::waitpid(process, &status, WNOHANG);
    if (found == process || (found < 0 && errno != EINTR)) return true;
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::string run_trial(int descriptor) {
  try {
    const pid_t process = start_feedrate({"helper", "storage"}, {.socket = descriptor, .log = "/dev/null"});
    int status = 0;
    if (!ends_within(process, kTrialLimit, status)) {
      ::kill(process, SIGKILL);
      static_cast<void>(ends_within(process, kKillLimit, status));
      return fmt::format("a trial in another process did not return within {} s", kTrialLimit.count());
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : "a trial in another process failed";
  } catch (const Failure& failure) {
    return fmt::format("a trial is not possible: {}", failure.what());
  }
}

}  // namespace

std::string why_not_registered(const File& file, int descriptor) {
  static std::mutex mutex;
  static std::map<dev_t, std::string> reasons;
  struct stat found {};
  if (::fstat(descriptor, &found) != 0) return fmt::format("fstat of {}: {}", file.path, std::strerror(errno));
  const std::lock_guard lock(mutex);
  const auto [reason, fresh] = reasons.try_emplace(found.st_dev);
  if (fresh) reason->second = run_trial(descriptor);
  return reason->second;
}

int try_registration() {
  const off_t end = ::lseek(kOwnSocket, 0, SEEK_END);
  if (end <= 0) {
    throw BadInput("subcommand", "helper", "the subcommands in --help; this one is internal to the storage experiment");
  }
  const auto size = std::min(static_cast<std::uint64_t>(end), kTrialBytes);
  const auto device = open_device("auto");
  const GuardedMapping mapping({"the mapped file", size}, kOwnSocket);
  const Buffer pinned = device->pin(mapping.data(), rounded_up(size, kDirectAlignment), Access::read_only);
  const Buffer memory = device->allocate_device(size), back = device->allocate_host(size, HostMemory::pinned);
  const auto stream = device->stream();
  stream->copy_to_device(memory.data(), mapping.data(), size);
  stream->copy_to_host(back.data(), memory.data(), size);
  stream->synchronize();
  std::vector<std::byte> expected(size);
  const Completion read = move_block(Operation::read, kOwnSocket, expected.data(), {.bytes = size});
  return read.bytes == size && std::memcmp(expected.data(), back.data(), size) == 0 ? 0 : 1;
}

}  // namespace feedrate::storage

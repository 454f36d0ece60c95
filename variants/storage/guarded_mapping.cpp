#include "variants/storage/guarded_mapping.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "common/error.hpp"

namespace feedrate::storage {

/// A mapping as the signal handler sees it. Entries are reused and never freed, so that the handler may follow the list
/// at any time.
struct GuardedMapping::Entry {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // end 0: unused
  std::atomic<bool> any_lost{false};
  std::atomic<std::atomic<std::uint64_t>*> lost{nullptr};  // a bit per page
  std::atomic<Entry*> next{nullptr};
};

namespace {

constexpr std::size_t kPage = 4096;       // of the replacement; smaller than or equal to the system's pages
constexpr std::size_t kPagesOfWord = 64;  // of `lost`

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uintptr_t>::is_always_lock_free &&
              std::atomic<void*>::is_always_lock_free);

std::atomic<GuardedMapping::Entry*> guarded{nullptr};
std::mutex guarded_mutex;  // of writers
struct sigaction handler_before {};

/// Maps zeros over the page of `address` if it is in a mapping. Async-signal-safe: atomics and a system call.
bool replace_page(std::uintptr_t address) {
  for (auto* entry = guarded.load(); entry != nullptr; entry = entry->next.load()) {
    const std::uintptr_t begin = entry->begin.load(), end = entry->end.load();
    if (address < begin || address >= end) continue;
    const std::size_t page = (address - begin) / kPage;
    entry->lost.load()[page / kPagesOfWord].fetch_or(std::uint64_t{1} << page % kPagesOfWord);
    entry->any_lost.store(true);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the handler reads addresses as atomic integers
    return ::mmap(reinterpret_cast<void*>(begin + page * kPage), kPage, PROT_READ,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  // A positive code: the kernel reports a fault, not a signal from a process.
  const bool replaced = info->si_code > 0 && replace_page(reinterpret_cast<std::uintptr_t>(info->si_addr));
  errno = saved;
  if (replaced) return;
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) return handler_before.sa_sigaction(signal, info, context);
  if (handler_before.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    return handler_before.sa_handler(signal);
  }
  ::signal(signal, SIG_DFL);
  if (info->si_code <= 0) ::raise(signal);  // a fault occurs again by itself
}

void install_handler() {
  static const bool kInstalled = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    return ::sigaction(SIGBUS, &action, &handler_before) == 0;
  }();
  static_cast<void>(kInstalled);
}

GuardedMapping::Entry* guard(std::uintptr_t begin, std::size_t bytes) {
  const std::size_t words = (bytes + kPage * kPagesOfWord - 1) / (kPage * kPagesOfWord);
  auto lost = std::make_unique<std::atomic<std::uint64_t>[]>(words);
  const std::lock_guard lock(guarded_mutex);
  install_handler();
  GuardedMapping::Entry* entry = guarded.load();
  while (entry != nullptr && entry->end.load() != 0) entry = entry->next.load();
  const bool fresh = entry == nullptr;
  if (fresh) entry = new GuardedMapping::Entry;
  entry->any_lost.store(false);
  entry->lost.store(lost.release());
  entry->begin.store(begin);
  entry->end.store(begin + (bytes + kPage - 1) / kPage * kPage);
  if (fresh) {
    entry->next.store(guarded.load());
    guarded.store(entry);
  }
  return entry;
}

}  // namespace

GuardedMapping::GuardedMapping(const File& file, int descriptor) : bytes_(file.bytes) {
  if (file.bytes == 0) throw Failure(fmt::format("{} is empty and cannot be mapped", file.path));
  void* const data = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) throw Failure(fmt::format("cannot map {}: {}", file.path, std::strerror(errno)));
  data_ = static_cast<std::byte*>(data);
  entry_ = guard(reinterpret_cast<std::uintptr_t>(data_), bytes_);
}

GuardedMapping::GuardedMapping(GuardedMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_), entry_(std::exchange(other.entry_, nullptr)) {}

GuardedMapping::~GuardedMapping() {
  if (data_ == nullptr) return;
  const std::lock_guard lock(guarded_mutex);
  entry_->end.store(0);
  delete[] entry_->lost.exchange(nullptr);
  ::munmap(data_, bytes_);
}

bool GuardedMapping::intact(std::size_t offset, std::size_t bytes) const {
  if (bytes == 0 || !entry_->any_lost.load()) return true;
  const auto* const lost = entry_->lost.load();
  for (std::size_t page = offset / kPage; page <= (offset + bytes - 1) / kPage; ++page) {
    if ((lost[page / kPagesOfWord].load() >> page % kPagesOfWord & 1) != 0) return false;
  }
  return true;
}

}  // namespace feedrate::storage

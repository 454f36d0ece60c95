#include "variants/storage/kvikio/module.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <future>
#include <kvikio/file_handle.hpp>
#include <string>
#include <system_error>

namespace {

using Transfer = std::future<std::size_t>;

void report(const char* what, char* error) {
  const std::size_t bytes = std::min(std::strlen(what), kFeedrateKvikioText - 1);
  std::memcpy(error, what, bytes);
  error[bytes] = '\0';
}

/// Calls `body`; reports an exception and returns `failed` instead.
template <class Result, class Body>
Result guarded(char* error, Result failed, const Body& body) {
  try {
    return body();
  } catch (const std::exception& exception) {
    report(exception.what(), error);
  } catch (...) {
    report("unknown exception", error);
  }
  return failed;
}

void configure(unsigned threads, std::size_t task, bool direct) {
  if (kvikio::defaults::thread_pool_nthreads() != threads) kvikio::defaults::set_thread_pool_nthreads(threads);
  kvikio::defaults::set_task_size(task);
  kvikio::defaults::set_bounce_buffer_size(task);
  kvikio::defaults::set_auto_direct_io_read(direct);
  kvikio::defaults::set_auto_direct_io_write(direct);
}

void* open_file(const char* path, bool writes, const char* compat, char* error) {
  const std::string word = compat;
  const kvikio::CompatMode mode = word == "on"    ? kvikio::CompatMode::ON
                                  : word == "off" ? kvikio::CompatMode::OFF
                                                  : kvikio::CompatMode::AUTO;
  return guarded(error, static_cast<void*>(nullptr), [&]() -> void* {
    return new kvikio::FileHandle(path, writes ? "r+" : "r", kvikio::FileHandle::m644, mode);
  });
}

void close_file(void* file) { delete static_cast<kvikio::FileHandle*>(file); }

void* start(void* file, bool writes, void* device, std::size_t bytes, std::uint64_t offset, char* error) {
  auto& handle = *static_cast<kvikio::FileHandle*>(file);
  return guarded(error, static_cast<void*>(nullptr), [&]() -> void* {
    // The last arguments: one task per transfer; no wait for the legacy stream, on which nothing runs.
    return writes ? new Transfer(handle.pwrite(device, bytes, offset, bytes, 0, false))
                  : new Transfer(handle.pread(device, bytes, offset, bytes, 0, false));
  });
}

bool ended(void* transfer, std::size_t* bytes, int* number, char* error) {
  auto* const future = static_cast<Transfer*>(transfer);
  if (future->wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  *bytes = 0;
  *number = 0;
  try {
    *bytes = future->get();
  } catch (const std::system_error& failure) {
    *number = failure.code().value();
    report(failure.what(), error);
  } catch (const std::exception& failure) {
    *number = -1;
    report(failure.what(), error);
  }
  delete future;
  return true;
}

void abandon(void* transfer) {
  auto* const future = static_cast<Transfer*>(transfer);
  future->wait();
  delete future;
}

constexpr FeedrateKvikio kInterface{kFeedrateKvikioVersion, configure, open_file, close_file, start, ended, abandon};

}  // namespace

extern "C" const FeedrateKvikio* feedrate_kvikio() { return &kInterface; }

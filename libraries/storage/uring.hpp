#pragma once
#include <liburing.h>

#include <cstddef>
#include <string>

#include "common/error.hpp"

namespace feedrate::storage {

/// Whether the kernel's workers run each request (IOSQE_ASYNC), so that cached blocks are copied on several cores.
/// `punt`: "yes", "no" or "auto": if blocks are cached, and large enough to be worth a worker.
inline bool punts(const std::string& punt, bool direct, std::size_t block) {
  constexpr std::size_t kWorthAWorker = std::size_t{64} << 10;
  return punt == "yes" || (punt == "auto" && !direct && block >= kWorthAWorker);
}

/// A ring of requests to the kernel.
class Uring {
 public:
  /// Why io_uring cannot be used; empty if it can.
  static std::string unavailable();
  /// Throws Failure.
  Uring(unsigned entries, unsigned flags);
  ~Uring() { ::io_uring_queue_exit(&ring_); }
  Uring(const Uring&) = delete;
  Uring& operator=(const Uring&) = delete;
  io_uring* get() { return &ring_; }
  /// Cancels all requests and waits until each of the `queued` submitted requests has ended, however long that takes.
  /// Their completions are discarded.
  void await_all(unsigned queued);
  /// Throws failure() if `result` is negative.
  static void check(int result, const char* what) {
    if (result < 0) throw failure(what, result);
  }
  /// The failure of a call, and how to remove its cause. `error`: a negative errno value.
  static Failure failure(const char* what, int error);

 private:
  io_uring ring_{};
};

}  // namespace feedrate::storage

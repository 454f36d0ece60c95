#pragma once
#include <liburing.h>

#include <string>

#include "common/error.hpp"

namespace feedrate::storage {

/// A ring of requests to the kernel.
class Uring {
 public:
  /// Why io_uring cannot be used; empty if it can.
  static std::string unavailable();
  /// Throws Failure.
  Uring(unsigned entries, unsigned flags) { check(::io_uring_queue_init(entries, &ring_, flags), "io_uring"); }
  ~Uring() { ::io_uring_queue_exit(&ring_); }
  Uring(const Uring&) = delete;
  Uring& operator=(const Uring&) = delete;
  io_uring* get() { return &ring_; }
  /// Throws failure() if `result` is negative.
  static void check(int result, const char* what) {
    if (result < 0) throw failure(what, result);
  }
  /// `error`: a negative errno value.
  static Failure failure(const char* what, int error);

 private:
  io_uring ring_{};
};

}  // namespace feedrate::storage

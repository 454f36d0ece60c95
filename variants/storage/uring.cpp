#include "variants/storage/uring.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace feedrate::storage {

Failure Uring::failure(const char* what, int error) {
  const char* const hint = error == -EPERM || error == -ENOSYS ? " (see /proc/sys/kernel/io_uring_disabled)"
                           : error == -ENOMEM                  ? " (see `ulimit -l`)"
                           : error == -EOPNOTSUPP              ? " (the device has no poll queues)"
                                                               : "";
  return Failure(fmt::format("{}: {}{}", what, std::strerror(-error), hint));
}

void Uring::await_all(unsigned queued) {
  if (queued == 0) return;
  if (io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_); entry != nullptr) {
    ::io_uring_prep_cancel64(entry, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
    ++queued;
  }
  ::io_uring_submit(&ring_);
  while (queued != 0) {
    io_uring_cqe* ended = nullptr;
    const int error = ::io_uring_wait_cqe(&ring_, &ended);
    if (error == -EINTR || error == -EAGAIN) continue;
    check(error, "io_uring_wait_cqe");
    ::io_uring_cqe_seen(&ring_, ended);
    --queued;
  }
}

std::string Uring::unavailable() {
  try {
    const Uring ring(2, 0);
    return "";
  } catch (const Failure& failure) {
    return failure.what();
  }
}

}  // namespace feedrate::storage

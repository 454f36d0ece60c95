#include "libraries/storage/uring.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace feedrate::storage {

namespace {

/// How to remove the cause of an error.
std::string hint_for(int error) {
  constexpr auto kAllow =
      "in a container, allow io_uring_setup, io_uring_enter and io_uring_register in its seccomp profile; or choose "
      "another --engine";
  switch (-error) {
    case ENOSYS:
      return fmt::format("; use Linux 6.1 or later; {}", kAllow);
    case EPERM:
      return fmt::format("; run `sysctl kernel.io_uring_disabled=0` as root; {}", kAllow);
    case ENOMEM:
      return "; raise the limit of locked memory (`ulimit -l unlimited`; in a container, `--ulimit memlock=-1`), or "
             "choose a smaller --block or --depth";
    case EOPNOTSUPP:
      return "; the device has no poll queues: choose another value of --uring";
    default:
      return "";
  }
}

}  // namespace

Uring::Uring(unsigned entries, unsigned flags) {
  const int error = ::io_uring_queue_init(entries, &ring_, flags);
  if (error == -EINVAL) {
    throw Failure(
        "io_uring: this kernel does not know all options; use Linux 6.1 or later, or choose another --engine");
  }
  check(error, "io_uring");
}

Failure Uring::failure(const char* what, int error) {
  return Failure(fmt::format("{}: {}{}", what, std::strerror(-error), hint_for(error)));
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

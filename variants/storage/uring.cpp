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

std::string Uring::unavailable() {
  try {
    const Uring ring(2, 0);
    return "";
  } catch (const Failure& failure) {
    return failure.what();
  }
}

}  // namespace feedrate::storage

#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "common/error.hpp"

namespace feedrate::storage {

/// An open file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  /// Throws Failure with the path and the reason.
  Descriptor(const std::string& path, int flags) : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (descriptor_ >= 0) return;
    const int error = errno;
    const bool direct = error == EINVAL && (flags & O_DIRECT) != 0;
    throw Failure(
        "cannot open " + path + ": " + std::strerror(error) +
        (direct ? "; its file system does not support O_DIRECT (tmpfs, for example); use a folder on a drive" : ""));
  }
  /// Owns a descriptor that is already open.
  static Descriptor adopt(int descriptor) {
    Descriptor adopted;
    adopted.descriptor_ = descriptor;
    return adopted;
  }
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

}  // namespace feedrate::storage

#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "variants/storage/engine.hpp"

namespace feedrate::storage {

/// A file mapped for reading, which survives the loss of its pages. An access to a page that the file no longer has, or
/// that the drive cannot read, raises SIGBUS. A handler of the process then replaces the page by zeros and marks it as
/// lost, so that the access continues. SIGBUS at any other address is left to the handler that was installed before.
class GuardedMapping {
 public:
  /// Throws Failure with the path and the reason.
  GuardedMapping(const File&, int descriptor);
  /// No thread or device may still access the bytes.
  ~GuardedMapping();
  GuardedMapping(GuardedMapping&& other) noexcept;
  GuardedMapping& operator=(GuardedMapping&&) = delete;
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// Whether no access to these bytes has failed so far. If one has, bytes that were read are wrong.
  bool intact(std::size_t offset, std::size_t bytes) const;

  struct Entry;

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Entry* entry_ = nullptr;
};

}  // namespace feedrate::storage

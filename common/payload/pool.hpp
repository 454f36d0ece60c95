#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/hash.hpp"
#include "common/payload/payload.hpp"
#include "common/threads/threads.hpp"

namespace feedrate {

/// Payloads of one size with their results, generated in advance, so that neither generating a message nor checking its
/// result repeats the workload's arithmetic. A hash of the seed and the message's id selects the entry: a stale or
/// swapped body has the expected bytes in one case out of `kEntries`.
class PayloadPool {
 public:
  static constexpr std::size_t kEntries = 1024;
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;  ///< maximum size of all entries together

  static std::uint64_t entry_of(std::uint64_t seed, std::uint64_t id) { return mix64(seed ^ mix64(id)) % kEntries; }
  static bool fits(std::size_t payload, std::size_t result) { return kEntries * (payload + result) <= kMaxBytes; }

  PayloadPool() = default;
  /// `entries` is a power of two. `make(entry, payload)` writes an entry's payload, and `work(payload, result)` writes
  /// its result. Runs on all cores.
  PayloadPool(std::size_t payload_bytes, std::size_t result_bytes,
              const std::function<void(std::uint64_t, std::byte*)>& make,
              const std::function<void(const std::byte*, std::byte*)>& work, std::size_t entries = kEntries)
      : payload_(payload_bytes),
        result_(result_bytes),
        // The bytes after a payload may be read, up to the end of a 64-byte piece.
        payload_stride_(round_up(payload_bytes)),
        result_stride_(round_up(result_bytes)),
        bytes_(entries * (payload_stride_ + result_stride_)),
        checksums_(entries) {
    in_parallel(entries, [&](std::size_t entry) {
      make(entry, payload_at(entry));
      work(payload_at(entry), result_at(entry));
      checksums_[entry] = checksum_of(result(entry), result_);
    });
  }

  /// Whether the pool has entries for payloads of this size.
  bool holds(std::size_t payload) const { return !checksums_.empty() && payload == payload_; }
  std::size_t entries() const { return checksums_.size(); }
  const std::byte* payload(std::size_t entry) const { return bytes_.data() + entry * payload_stride_; }
  const std::byte* result(std::size_t entry) const {
    return bytes_.data() + entries() * payload_stride_ + entry * result_stride_;
  }
  std::uint32_t checksum(std::size_t entry) const { return checksums_[entry]; }

 private:
  static std::size_t round_up(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  std::byte* payload_at(std::size_t entry) { return bytes_.data() + entry * payload_stride_; }
  std::byte* result_at(std::size_t entry) {
    return bytes_.data() + entries() * payload_stride_ + entry * result_stride_;
  }

  std::size_t payload_ = 0, result_ = 0, payload_stride_ = 0, result_stride_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<std::uint32_t> checksums_;
};

}  // namespace feedrate

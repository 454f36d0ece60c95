#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "experiments/harness/timeline/cupti/library.hpp"

namespace feedrate {

/// Buffers for CUPTI's records. Full buffers are kept and read after the measurement, to disturb it as little as
/// possible. Thread-safe.
class RecordBuffers {
 public:
  using Buffer = std::unique_ptr<std::uint8_t[]>;
  struct Full {
    Buffer buffer;
    std::size_t bytes;
  };
  // Each of CUPTI's threads holds a buffer, so a buffer must be small compared with the total. CUPTI asks for 1 to 10
  // MB.
  static constexpr std::size_t kBytes = 1 << 20;

  explicit RecordBuffers(std::size_t max_bytes) : max_(std::max<std::size_t>(1, max_bytes / kBytes)) {
    for (std::size_t i = 0; i < max_; ++i) free_.push_back(make());
  }

  /// Returns nullptr if too many buffers are in use. CUPTI before 12.9 may crash in that case, so reaching the limit of
  /// kept buffers does not cause it: the records of further buffers are counted, and the buffers are reused.
  Buffer take() {
    const std::lock_guard lock(mutex_);
    if (out_ == max_ + kMaxOut) return nullptr;
    ++out_;
    if (free_.empty()) return make();
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give_back(Buffer buffer, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    --out_;
    if (keep_ && full_.size() < max_) {
      full_.push_back({std::move(buffer), bytes});
      return;
    }
    if (keep_) for_records(buffer.get(), bytes, [&](const CUpti_Activity&) { ++dropped_; });
    reuse(std::move(buffer));
  }

  void keep() {
    const std::lock_guard lock(mutex_);
    keep_ = true;
    dropped_ = 0;
  }
  /// Returns the kept buffers and the number of dropped records.
  std::pair<std::vector<Full>, std::uint64_t> stop_keeping() {
    const std::lock_guard lock(mutex_);
    keep_ = false;
    return {std::exchange(full_, {}), dropped_};
  }
  void put_back(std::vector<Full>&& read) {
    const std::lock_guard lock(mutex_);
    for (auto& [buffer, bytes] : read) reuse(std::move(buffer));
  }

 private:
  static constexpr std::size_t kMaxOut = 256;
  // Zeroed here; otherwise CUPTI would zero it in the requesting thread, and page faults would occur there.
  static Buffer make() { return std::make_unique<std::uint8_t[]>(kBytes); }
  void reuse(Buffer buffer) {
    if (free_.size() >= max_) return;
    std::memset(buffer.get(), 0, kBytes);
    free_.push_back(std::move(buffer));
  }

  const std::size_t max_;
  std::mutex mutex_;
  bool keep_ = false;
  std::uint64_t dropped_ = 0;
  std::size_t out_ = 0;
  std::vector<Buffer> free_;
  std::vector<Full> full_;
};

}  // namespace feedrate

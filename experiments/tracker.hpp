#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace feedrate {

/// Knows which of one producer's sequence numbers have come back. Numbers may come back in any order within `span` of
/// the lowest one missing; the producer never runs further ahead. One thread.
class Tracker {
 public:
  enum class Verdict { fresh, duplicate, unknown };

  /// `span` is rounded up to a power of two, at least 64.
  explicit Tracker(std::uint64_t span)
      : seen_(std::bit_ceil(std::max<std::uint64_t>(span, 64)) / 64), span_(seen_.size() * 64) {}

  Verdict accept(std::uint64_t sequence) {
    if (sequence == lowest_ && ahead_ == 0) {  // in order, the usual case
      ++lowest_;
      return Verdict::fresh;
    }
    if (sequence < lowest_) return Verdict::duplicate;
    if (sequence - lowest_ >= span_) return Verdict::unknown;
    if (test(sequence)) return Verdict::duplicate;
    set(sequence, true);
    ++ahead_;
    if (sequence < highest_) ++reordered_;
    highest_ = std::max(highest_, sequence);
    for (; test(lowest_); ++lowest_, --ahead_) set(lowest_, false);
    return Verdict::fresh;
  }
  /// All numbers below it have come back.
  std::uint64_t lowest_missing() const { return lowest_; }
  /// Numbers that came back after a higher one had.
  std::uint64_t reordered() const { return reordered_; }
  std::uint64_t span() const { return span_; }

 private:
  bool test(std::uint64_t n) const { return (seen_[n / 64 % seen_.size()] >> (n % 64) & 1) != 0; }
  void set(std::uint64_t n, bool value) {
    const std::uint64_t bit = std::uint64_t{1} << (n % 64);
    auto& word = seen_[n / 64 % seen_.size()];
    word = value ? word | bit : word & ~bit;
  }

  std::vector<std::uint64_t> seen_;
  std::uint64_t span_, lowest_ = 0, highest_ = 0, ahead_ = 0, reordered_ = 0;
};

}  // namespace feedrate

#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace feedrate {

/// Tracks which of a producer's sequence numbers have come back. Numbers may come back in any order within `span` of
/// the lowest missing one; the producer never runs further ahead. For use by one thread.
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
    mark(sequence, 1);
    return Verdict::fresh;
  }
  /// Accepts `count` numbers (at least one) starting at `first` and returns true if all of them are fresh; otherwise
  /// changes nothing. Equivalent to `count` calls of `accept`, but processes 64 numbers at a time.
  bool accept_run(std::uint64_t first, std::uint64_t count) {
    if (first == lowest_ && ahead_ == 0) {  // in order, the usual case
      lowest_ += count;
      return true;
    }
    if (first < lowest_ || first - lowest_ > span_ || count > span_ - (first - lowest_)) return false;
    bool fresh = true;
    by_words(first, count, [&](std::uint64_t word, std::uint64_t bits) { fresh &= (word & bits) == 0; });
    if (fresh) mark(first, count);
    return fresh;
  }
  /// Lowest missing number; all numbers below it have come back.
  std::uint64_t lowest_missing() const { return lowest_; }
  /// Count of numbers that came back after a higher one.
  std::uint64_t reordered() const { return reordered_; }
  std::uint64_t span() const { return span_; }

 private:
  std::uint64_t& word_of(std::uint64_t n) { return seen_[n / 64 & (seen_.size() - 1)]; }
  bool test(std::uint64_t n) { return (word_of(n) >> (n % 64) & 1) != 0; }
  /// Calls `f(word, bits)` for the words that hold the bits of `count` numbers starting at `first`.
  template <class F>
  void by_words(std::uint64_t first, std::uint64_t count, F&& f) {
    while (count > 0) {
      const std::uint64_t here = std::min(count, 64 - first % 64);
      f(word_of(first), ~std::uint64_t{0} >> (64 - here) << (first % 64));
      first += here;
      count -= here;
    }
  }
  /// Records fresh numbers if a lower number is missing or higher numbers have already come back.
  void mark(std::uint64_t first, std::uint64_t count) {
    const std::uint64_t end = first + count;
    if (first < highest_) reordered_ += std::min(end, highest_) - first;
    highest_ = std::max(highest_, end - 1);
    if (first > lowest_) {
      by_words(first, count, [](std::uint64_t& word, std::uint64_t bits) { word |= bits; });
      ahead_ += count;
      return;
    }
    lowest_ = end;
    while (ahead_ > 0) {  // numbers that directly follow
      std::uint64_t& word = word_of(lowest_);
      const std::uint64_t rest = 64 - lowest_ % 64;
      const auto done = static_cast<std::uint64_t>(std::countr_one(word >> (lowest_ % 64)));
      if (done > 0) word &= ~(~std::uint64_t{0} >> (64 - done) << (lowest_ % 64));
      lowest_ += done;
      ahead_ -= done;
      if (done < rest) break;
    }
  }

  std::vector<std::uint64_t> seen_;
  std::uint64_t span_, lowest_ = 0, highest_ = 0, ahead_ = 0, reordered_ = 0;
};

}  // namespace feedrate

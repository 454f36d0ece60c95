#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace feedrate::storage {

/// The order in which one of several threads accesses the blocks of all files. Block `i` is the i-th of the files laid
/// end to end.
class Pattern {
 public:
  /// `access`: sequential (consecutive blocks), strided (every 16th) or random (a permutation). Each thread has its own
  /// part of the blocks.
  Pattern(const std::string& access, std::uint64_t blocks, unsigned thread, unsigned threads, std::uint64_t seed) {
    const std::uint64_t first = blocks * thread / threads, end = blocks * (thread + 1) / threads;
    order_.resize(end - first);
    std::iota(order_.begin(), order_.end(), first);
    if (access == "random") std::shuffle(order_.begin(), order_.end(), std::mt19937_64(seed + thread));
    if (access == "strided") {
      std::vector<std::uint64_t> strided;
      for (std::uint64_t begin = 0; begin < kStride; ++begin) {
        for (std::uint64_t at = begin; at < order_.size(); at += kStride) strided.push_back(order_[at]);
      }
      order_ = std::move(strided);
    }
  }
  /// The block of the n-th request; after all blocks, the order begins again.
  std::uint64_t at(std::uint64_t n) const { return order_[n % order_.size()]; }
  /// The first `count` blocks.
  Pattern first(std::uint64_t count) const {
    Pattern some = *this;
    some.order_.resize(std::min<std::uint64_t>(count, order_.size()));
    return some;
  }
  /// Number of different blocks.
  std::uint64_t size() const { return order_.size(); }

  static constexpr std::uint64_t kStride = 16;  // blocks

 private:
  std::vector<std::uint64_t> order_;
};

}  // namespace feedrate::storage

#pragma once
#include <bit>
#include <cstdint>
#include <vector>

namespace feedrate {

/// Counts of nanosecond values in HdrHistogram's layout (Tene, hdrhistogram.org): 256 exact buckets, then 128 buckets
/// per doubling, so that any value is known to within 1/128 (0.8 %). Values of 2^40 ns (18 minutes) and more are
/// counted as overflow, never clamped. One thread records; histograms of several threads merge by addition.
class Histogram {
 public:
  static constexpr unsigned kSubBucketBits = 8;
  static constexpr unsigned kValueBits = 40;
  static constexpr std::uint64_t kHalf = std::uint64_t{1} << (kSubBucketBits - 1);
  static constexpr std::size_t kBuckets = 2 * kHalf + (kValueBits - kSubBucketBits) * kHalf;

  static constexpr std::size_t index_of(std::uint64_t value) {
    if (value < 2 * kHalf) return value;
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - kSubBucketBits;
    return 2 * kHalf + (shift - 1) * kHalf + ((value >> shift) - kHalf);
  }
  /// The smallest value of a bucket, and the number of values that the bucket covers.
  static constexpr std::uint64_t lowest(std::size_t index) {
    if (index < 2 * kHalf) return index;
    return (kHalf + (index - 2 * kHalf) % kHalf) << shift_of(index);
  }
  static constexpr std::uint64_t width(std::size_t index) { return std::uint64_t{1} << shift_of(index); }

  void record(std::uint64_t value) {
    if (value >> kValueBits != 0) {
      ++overflow_;
    } else {
      if (counts_.empty()) counts_.resize(kBuckets);  // 35 KB; many histograms of a load remain empty
      ++counts_[index_of(value)];
    }
    sum_ += static_cast<double>(value);
    ++samples_;
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }
  void merge(const Histogram& other);
  /// The value at or below which the share `quantile` (0..1] of the samples lies, as the middle of its bucket; 0
  /// without samples.
  double quantile(double quantile) const;
  /// The same, interpolated within the bucket, as if its samples were evenly spread. Distributions that share their
  /// median's bucket then still differ.
  double interpolated(double quantile) const;

  std::uint64_t samples() const { return samples_; }
  std::uint64_t overflow() const { return overflow_; }
  std::uint64_t min() const { return samples_ == 0 ? 0 : min_; }
  std::uint64_t max() const { return max_; }
  double mean() const { return samples_ == 0 ? 0 : sum_ / static_cast<double>(samples_); }
  std::uint64_t count(std::size_t index) const { return counts_.empty() ? 0 : counts_[index]; }

 private:
  static constexpr unsigned shift_of(std::size_t index) {
    return index < 2 * kHalf ? 0 : static_cast<unsigned>((index - 2 * kHalf) / kHalf) + 1;
  }
  std::vector<std::uint64_t> counts_;
  std::uint64_t samples_ = 0, overflow_ = 0, min_ = ~std::uint64_t{0}, max_ = 0;
  double sum_ = 0;
};

}  // namespace feedrate

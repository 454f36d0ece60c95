#pragma once
#include <cstddef>
#include <cstdint>

namespace feedrate {

/// When a producer that publishes a few messages at a time goes on to its next lane. Messages that come to a lane
/// between two looks of its pollers are served together, by one team in one round over the bus, and their results come
/// back in one run; those that come later would wait for the lane's teams while other lanes' are free.
class LaneTurn {
 public:
  static constexpr std::uint64_t kLongestNs = 1000;  ///< somewhat less than a look takes

  /// A turn ends with `most` messages, and at the first publish that is kLongestNs or more behind the last turn's end.
  explicit LaneTurn(std::size_t most) : most_(most) {}

  /// `count` more were published to the lane; `now()`, in ns, is asked only where it matters. Says whether that ends
  /// the turn.
  template <class Now>
  bool ends(std::size_t count, Now&& now) {
    published_ += count;
    if (count < most_) {
      const std::uint64_t at = now();
      if (published_ < most_ && at - began_ns_ < kLongestNs) return false;
      began_ns_ = at;
    }
    published_ = 0;
    return true;
  }
  /// Begins anew with another lane, as this one takes no more.
  void pass_over() { published_ = 0; }

 private:
  std::size_t most_, published_ = 0;
  std::uint64_t began_ns_ = 0;  // when the last one ended
};

}  // namespace feedrate

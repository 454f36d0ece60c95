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

  /// A turn ends with `most` messages, or when it has lasted kLongestNs.
  explicit LaneTurn(std::size_t most) : most_(most) {}

  /// `count` more were published to the lane; `now()`, in ns, is asked only where it matters. Says whether the turn has
  /// ended; the next one begins with the next message.
  template <class Now>
  bool ends(std::size_t count, Now&& now) {
    published_ += count;
    if (published_ < most_) {
      const std::uint64_t at = now();
      if (published_ == count) began_ns_ = at;
      if (at - began_ns_ < kLongestNs) return false;
    }
    cut_short();
    return true;
  }
  /// The lane takes no more.
  void cut_short() { published_ = 0; }

 private:
  std::size_t most_, published_ = 0;
  std::uint64_t began_ns_ = 0;
};

}  // namespace feedrate

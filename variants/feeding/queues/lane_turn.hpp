#pragma once
#include <cstddef>
#include <cstdint>

namespace feedrate {

/// Decides when a producer that publishes a few messages at a time continues with its next lane. Messages that reach a
/// lane between two polls are served together, by one team with one round trip over the bus, and their results come
/// back in one run. Later messages would wait for this lane's teams while other lanes' teams are idle.
class LaneTurn {
 public:
  static constexpr std::uint64_t kLongestNs = 1000;  ///< slightly less than the time of one poll

  /// A turn ends after `most` messages, or at the first publish kLongestNs or more after the end of the last turn.
  explicit LaneTurn(std::size_t most) : max_(most) {}

  /// Records that `count` more messages were published to the lane. Returns whether that ends the turn. `now()` returns
  /// the time in ns and is called only if needed.
  template <class Now>
  bool ends(std::size_t count, Now&& now) {
    published_ += count;
    if (count < max_) {
      const std::uint64_t at = now();
      if (published_ < max_ && at - began_ns_ < kLongestNs) return false;
      began_ns_ = at;
    }
    published_ = 0;
    return true;
  }
  /// Starts a new turn with another lane, because this lane is full.
  void pass_over() { published_ = 0; }

 private:
  std::size_t max_, published_ = 0;
  std::uint64_t began_ns_ = 0;  // when the last turn ended
};

}  // namespace feedrate

#pragma once
#include <map>
#include <optional>
#include <string>

#include "common/message/message.hpp"
#include "variants/feeding/point.hpp"

namespace feedrate {

/// The machine's floors by name, as far as they were measured.
using Floors = std::map<std::string, double>;
/// What a queue chose where the point said "auto" or 0, for the row; by axis.
using Choices = std::map<std::string, std::string>;

/// A floor, or what follows from some: its name and its value.
struct Limit {
  std::string floor;
  double value = 0;
};

/// The bounds that the members of a point can't beat. Each member names the floors that bind it; what follows from a
/// floor that was not measured is left out.
class Limits {
 public:
  explicit Limits(const Floors& floors) : floors_(floors) {}
  std::optional<double> floor(const std::string& name) const {
    const auto found = floors_.find(name);
    return found == floors_.end() ? std::nullopt : std::optional(found->second);
  }

  /// No more messages a second than this. The least of all counts.
  void rate(const std::string& name, std::optional<double> messages_per_second) {
    if (!messages_per_second || (rate_ && rate_->value <= *messages_per_second)) return;
    rate_ = Limit{name, *messages_per_second};
  }
  /// `bytes` of each message pass through the floor of this name, in bytes a second.
  void bytes(const std::string& name, double bytes) {
    if (const auto value = floor(name)) rate(name, *value / bytes);
  }
  /// A lower limit on a lone message's time for one part of its way. The parts add up; if one is unknown, there is no
  /// limit.
  void time(const std::string& name, std::optional<double> ns) {
    if (!ns) incomplete_ = true;
    if (!ns || incomplete_) return;
    if (!time_) time_ = Limit{};
    time_->floor += (time_->floor.empty() ? "" : "+") + name;
    time_->value += *ns;
  }
  void time(const std::string& name) { time(name, floor(name)); }

  std::optional<Limit> least_rate() const { return rate_; }
  std::optional<Limit> least_time() const { return incomplete_ ? std::nullopt : time_; }

 private:
  const Floors& floors_;
  std::optional<Limit> rate_, time_;
  bool incomplete_ = false;
};

/// What a member is told of the point that it bounds.
struct Bounded {
  const Point& point;
  const Choices& choices;
  std::size_t in, out;  ///< bytes of a message and of its result, headers included
  std::size_t larger() const { return in > out ? in : out; }
  /// Of the larger one's slot, which is padded.
  double slot() const { return static_cast<double>(stride_of(larger() - sizeof(Header))); }
};

/// A member's share in the limits on the CPU device: an answer from another thread, and each message copied at least
/// once each way.
inline void limit_by_host(const Bounded& bounded, Limits& limits) {
  limits.time("thread_round_trip_ns");
  limits.bytes("host_copy_bytes_per_second", bounded.slot());
}

}  // namespace feedrate

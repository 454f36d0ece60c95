#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/limits/expression.hpp"
#include "common/message/message.hpp"
#include "variants/feeding/point.hpp"

namespace feedrate {

/// The values that a queue chose for axes at "auto" or 0, by axis; stored in the row.
using Choices = std::map<std::string, std::string>;

/// The bounds on a point's rate and latency, as stated by its queue, transfer and workload.
class Bounds {
 public:
  explicit Bounds(const Limits& limits) : limits_(limits) {}
  /// Value of a limit in its unit, if it was measured.
  std::optional<double> limit(const std::string& name) const { return value_of(limits_, name); }

  /// Limits the rate to this many messages per second.
  void rate(Expression messages_per_second) { rates_.push_back(std::move(messages_per_second)); }
  /// `bytes` bytes per message are subject to the ceiling with this name, which is in bytes per second.
  void bytes(const std::string& name, double bytes) { rate(ceiling_of(name) / given("bytes", bytes)); }
  /// Adds the minimum time for one part of a lone message's path.
  void time(Expression part) { time_ = time_ ? *time_ + std::move(part) : std::move(part); }
  void time(const std::string& name) { time(floor_of(name)); }

  const std::vector<Expression>& rates() const { return rates_; }
  const std::optional<Expression>& time() const { return time_; }

 private:
  const Limits& limits_;
  std::vector<Expression> rates_;
  std::optional<Expression> time_;
};

/// The point for which a queue, transfer or workload states bounds.
struct BoundedPoint {
  const Point& point;
  const Choices& choices;
  std::size_t in, out;  ///< bytes of a message and of its result, including headers
  std::size_t larger() const { return in > out ? in : out; }
  /// Size in bytes of the slot for the larger of the two, including padding.
  double slot() const { return static_cast<double>(stride_of(larger() - sizeof(Header))); }
};

/// Number of messages that all workers together serve at once.
inline Expression batches_at_once(const Point& point) {
  return given("workers", point.workers) * given("batch", static_cast<double>(point.batch));
}

/// Bounds on the CPU device: another thread must answer, and each message is copied at least once each way.
inline void limit_by_host(const BoundedPoint& bounded, Bounds& bounds) {
  bounds.time("thread_round_trip_ns");
  bounds.bytes("host_copy_bytes_per_second", bounded.slot());
}

}  // namespace feedrate

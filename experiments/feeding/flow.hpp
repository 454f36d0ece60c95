#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "experiments/feeding/stage_times.hpp"
#include "experiments/feeding/tracker.hpp"
#include "experiments/harness/load/schedule.hpp"
#include "experiments/harness/measure/histogram.hpp"
#include "variants/feeding/queue.hpp"

namespace feedrate {

/// One pass of load. It lasts for `seconds`, or until exactly `messages` have been sent if that number is not 0, or it
/// follows a schedule.
struct Pass {
  double seconds = 0.5;
  std::uint64_t messages = 0;
  unsigned sample_every = 1;           ///< a power of two: one in this many messages is timed
  const Schedule* schedule = nullptr;  ///< set for an open load
  bool until_steady = false;           ///< ends before `seconds` once the rate no longer has a trend
};

/// Maximum number of stage samples that a flow keeps per pass: at most 6 MiB per flow and 100 MiB for all flows,
/// allocated before the pass begins.
inline std::size_t max_stage_samples(unsigned producers) {
  constexpr std::size_t kEach = 1 << 16, kAll = 1 << 20;
  return std::min(kEach, kAll / producers);
}

/// Data that all flows of a load share.
struct Work {
  Point point;
  const Payloads& payloads;
  std::uint64_t seed;
  bool queue_works;
  StageClock* stages = nullptr;  ///< clock of the pass; null while nothing is timed
};

/// Message counts.
struct Counts {
  std::uint64_t sent = 0, received = 0, lost = 0, duplicated = 0, corrupted = 0, reordered = 0;
};

/// Description of wrong results; empty if the queue kept its guarantee. An at-least-once queue may duplicate results,
/// and an at-most-once queue may lose results through a planted fault.
inline std::string wrong_results(const Counts& counts, Delivery delivery, bool fault_planted = false) {
  const bool duplicates_allowed = delivery == Delivery::at_least_once;
  const bool losses_allowed = delivery == Delivery::at_most_once && fault_planted;
  const bool right =
      counts.corrupted == 0 && (counts.duplicated == 0 || duplicates_allowed) && (counts.lost == 0 || losses_allowed);
  if (right) return "";
  return fmt::format("wrong results: {} lost, {} duplicated, {} corrupted of {} sent", counts.lost, counts.duplicated,
                     counts.corrupted, counts.sent);
}

/// Times of a timed message, passed from the sender to the collector.
struct Stamp {
  std::atomic<std::uint64_t> published_ns{0};
  std::atomic<std::uint64_t> own_lag_ns{0};  ///< open load: the part of the lag that the sender caused
};

/// Whether one of `count` messages is sampled. Only a batch with such a message gets a range in a profile: with a tool
/// attached, a range for every batch would halve a rate of hundreds of millions of messages per second.
inline bool samples_one_of(const Work& work, std::uint64_t sequence, std::uint64_t count) {
  return work.stages != nullptr && work.stages->samples_one_of(sequence, count);
}

/// One producer, its collector, and their shared data. Every atomic has one writer.
struct Flow {
  Flow(unsigned index, const Point& point, Queue& queue)
      : index(index),
        producers(point.producers),
        payload(point.payload),
        producer(queue.producer(index)),
        collector(queue.collector(index)),
        stamps(std::bit_ceil(std::max<std::size_t>(2 * point.window, 1024))),
        tracker(stamps.size()) {}

  /// Prepares a pass: copies the flow's part of the schedule into contiguous memory near the sending thread. Call it
  /// from that thread while nothing is in flight and before `start` is set.
  void begin(const Schedule* schedule);

  /// Position in the schedule of the message with this sequence number.
  std::size_t place_of(std::uint64_t sequence) const { return (sequence - first) * producers + index; }
  std::uint64_t due_ns(std::uint64_t sequence) const { return start + due[sequence - first]; }
  /// Whether the pass can have sent all of these sequence numbers. The numbers from a corrupted id may be out of range.
  bool may_have(std::uint64_t begin, std::uint64_t end) const {
    return begin >= first && (schedule == nullptr || end - first <= due.size());
  }
  bool mixed() const { return schedule != nullptr && !schedule->payloads.empty(); }
  std::size_t payload_of(std::uint64_t sequence) const {
    return mixed() ? schedule->payloads[place_of(sequence)] : payload;
  }
  /// The stamp of a timed message. Stamps are adjacent, so several share one cache line.
  Stamp& stamp(std::uint64_t sequence, unsigned every) {
    return stamps[(sequence >> std::countr_zero(every)) & (stamps.size() - 1)];
  }

  unsigned index, producers;
  std::size_t payload;
  std::unique_ptr<Producer> producer;
  std::unique_ptr<Collector> collector;
  std::vector<Stamp> stamps;
  const Schedule* schedule = nullptr;  // schedule of the pass; the next three members describe it
  std::vector<std::uint64_t> due;      // ns since `start`, for this flow's messages in the schedule
  std::uint64_t start = 0;             // ns: earliest due time of the first message
  std::uint64_t first = 0;             // sequence number of the first message

  // On separate cache lines (128 bytes, because the host fetches pairs): a producer that waits for room polls
  // `received` and must not take the lines in which its collector counts.
  alignas(128) Tracker tracker;  // written by the collector, like everything up to `sent`
  Counts counts;                 // read after the collector has ended
  Histogram latency;             // starts at publish (closed load) or at the due time (open load)
  Histogram service;             // open load: starts at publish
  Histogram without_own_lag;     // open load: `latency` without the sender's own lag
  std::map<unsigned, Histogram> by_priority;
  std::vector<StageSample> stages;
  std::vector<std::uint64_t> ids;  // ids of the current results
  std::uint64_t finished_at = 0;   // when the last result of the pass arrived
  std::uint64_t sent_seen = 0;     // last value read from `sent`
  std::string first_wrong;         // expected and actual content of the first corrupted result

  alignas(128) std::atomic<std::uint64_t> sent{0};  // written by the producer, like everything up to `received`
  std::atomic<bool> all_sent{false};
  Histogram send_lag;            // open load: from the due time to publish
  Histogram own_lag;             // the part of the lag that the queue did not cause
  std::uint64_t unsent = 0;      // number of scheduled messages that were not sent when the pass ended
  std::uint64_t sending_ns = 0;  // time from the start of the pass to its last message
  std::uint64_t blocked_ns = 0;  // time without room for a message
  std::uint64_t polls = 0;       // number of checks for due messages
  std::uint64_t polling_ns = 0;  // time spent waiting for due messages

  alignas(128) std::atomic<std::uint64_t> received{0};  // written by the collector
  std::atomic<std::uint64_t> lowest_missing{0};
};

/// Calls `each(sequence)` for the timed messages among `count` messages that start at `sequence`.
template <class Each>
void for_timed(std::uint64_t sequence, std::uint64_t count, std::uint64_t every, Each&& each) {
  for (std::uint64_t timed = (sequence + every - 1) & ~(every - 1); timed < sequence + count; timed += every)
    each(timed);
}

/// The collecting half of a flow: polls, verifies, counts and times results until all sent messages have come back or
/// `abort` is set.
void collect(Flow&, const Work&, const Pass&, const std::atomic<bool>& abort);

/// The sending half of a closed load: keeps the window full until `stop` is set.
void send_closed(Flow&, const Work&, const Pass&, const std::atomic<bool>& stop);
/// The sending half of an open load: sends each message of the schedule when it is due, or as soon afterwards as there
/// is room.
void send_open(Flow&, const Work&, const Pass&, const std::atomic<bool>& stop);

}  // namespace feedrate

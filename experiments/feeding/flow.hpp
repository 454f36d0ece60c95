#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "experiments/feeding/arrivals.hpp"
#include "experiments/feeding/counts.hpp"
#include "experiments/feeding/stage_times.hpp"
#include "experiments/feeding/tracker.hpp"
#include "experiments/harness/measure/histogram.hpp"
#include "variants/feeding/queue.hpp"

namespace feedrate {

/// One timed stretch of load: until `seconds` have passed, or exactly `messages` were sent when that is not 0, or by a
/// schedule.
struct Pass {
  double seconds = 0.5;
  std::uint64_t messages = 0;
  unsigned sample_every = 1;           ///< a power of two: which share of the messages is timed
  const Schedule* schedule = nullptr;  ///< open load, when there is one
  bool until_steady = false;           ///< ends sooner than `seconds` once the rate has no trend any more
};

/// The most stage samples that a flow keeps of a pass: 6 MiB, allocated before it begins, and 100 MiB for all flows.
inline std::size_t most_stage_samples(unsigned producers) {
  constexpr std::size_t kEach = 1 << 16, kAll = 1 << 20;
  return std::min(kEach, kAll / producers);
}

/// What is the same for all flows of a load.
struct Work {
  Point point;
  const Payloads& payloads;
  std::uint64_t seed;
  bool queue_works;
  StageClock* stages = nullptr;  ///< of the pass; none while nothing is timed
};

/// What a sender tells the collector of a timed message.
struct Stamp {
  std::atomic<std::uint64_t> published_ns{0};
  std::atomic<std::uint64_t> own_lag_ns{0};  ///< open load: how late it was by the sender's own fault
};

/// Whether one of `count` messages is sampled. Only a batch with such a message gets a range in a profile: with a
/// tool attached, a range for every batch would halve a rate of hundreds of millions of messages a second.
inline bool samples_one_of(const Work& work, std::uint64_t sequence, std::uint64_t count) {
  return work.stages != nullptr && work.stages->samples_one_of(sequence, count);
}

/// One producer, its collector, and what they share. Everything atomic has one writer.
struct Flow {
  Flow(unsigned index, const Point& point, Queue& queue)
      : index(index),
        producers(point.producers),
        payload(point.payload),
        producer(queue.producer(index)),
        collector(queue.collector(index)),
        stamps(std::bit_ceil(std::max<std::size_t>(2 * point.window, 1024))),
        tracker(stamps.size()) {}

  /// Call it before a pass, while nothing is in flight and before `start` is set, from the thread that will send: it
  /// copies the flow's part of the schedule into contiguous memory near that thread.
  void begin(const Schedule* schedule);

  /// The place in the schedule of the message with this sequence number.
  std::size_t place_of(std::uint64_t sequence) const { return (sequence - first) * producers + index; }
  std::uint64_t due_ns(std::uint64_t sequence) const { return start + due[sequence - first]; }
  /// Whether the pass can have sent all of these. The numbers of a corrupted id may lie outside it.
  bool may_have(std::uint64_t begin, std::uint64_t end) const {
    return begin >= first && (schedule == nullptr || end - first <= due.size());
  }
  bool mixed() const { return schedule != nullptr && !schedule->payloads.empty(); }
  std::size_t payload_of(std::uint64_t sequence) const {
    return mixed() ? schedule->payloads[place_of(sequence)] : payload;
  }
  /// The stamp of a timed message. Stamps lie side by side, so that several share one cache line.
  Stamp& stamp(std::uint64_t sequence, unsigned every) {
    return stamps[(sequence >> std::countr_zero(every)) & (stamps.size() - 1)];
  }

  unsigned index, producers;
  std::size_t payload;
  std::unique_ptr<Producer> producer;
  std::unique_ptr<Collector> collector;
  std::vector<Stamp> stamps;
  const Schedule* schedule = nullptr;  // of the pass, as are the next three
  std::vector<std::uint64_t> due;      // ns since `start`: this flow's messages of the schedule
  std::uint64_t start = 0;             // ns: when its first message is due at the earliest
  std::uint64_t first = 0;             // the sequence number that its first message has

  // On separate cache lines (128 bytes: the host fetches pairs): a producer that waits for room polls `received`, and
  // must not take the lines in which its collector counts.
  alignas(128) Tracker tracker;  // the collector's, as is all up to `sent`
  Counts counts;                 // read when it has ended
  Histogram latency;             // closed load: from publish on; open load: from the intended time on
  Histogram service;             // open load: from publish on
  Histogram without_own_lag;     // open load: `latency` without the sender's own lag
  std::map<unsigned, Histogram> by_priority;
  std::vector<StageSample> stages;
  std::vector<std::uint64_t> ids;  // of the results at hand
  std::uint64_t finished_at = 0;   // when the last result of the pass came
  std::uint64_t sent_seen = 0;     // `sent`, as last looked at
  std::string first_wrong;         // of the corrupted results, what was expected and found

  alignas(128) std::atomic<std::uint64_t> sent{0};  // by the producer, as all until the next line
  std::atomic<bool> all_sent{false};
  Histogram send_lag;                            // open load: from the intended time to publish
  Histogram own_lag;                             // the part of it that the queue is not to blame for
  std::uint64_t unsent = 0;                      // of the schedule, when the pass ended
  std::uint64_t sending_ns = 0, blocked_ns = 0;  // from the pass's begin to its last message; without room
  std::uint64_t looks = 0, looking_ns = 0;       // waiting for what is due

  alignas(128) std::atomic<std::uint64_t> received{0};  // by the collector
  std::atomic<std::uint64_t> lowest_missing{0};
};

/// Calls `each(sequence)` for those of `count` messages from `sequence` on that are timed.
template <class Each>
void for_timed(std::uint64_t sequence, std::uint64_t count, std::uint64_t every, Each&& each) {
  for (std::uint64_t timed = (sequence + every - 1) & ~(every - 1); timed < sequence + count; timed += every)
    each(timed);
}

/// The collecting half of a flow: polls, verifies, counts and times, until all that was sent has come back or `abort`.
void collect(Flow&, const Work&, const Pass&, const std::atomic<bool>& abort);

/// The sending half, until `stop`: keeps the window full.
void send_closed(Flow&, const Work&, const Pass&, const std::atomic<bool>& stop);
/// Sends each message of the schedule when it is due, or as soon after as there is room.
void send_open(Flow&, const Work&, const Pass&, const std::atomic<bool>& stop);

}  // namespace feedrate

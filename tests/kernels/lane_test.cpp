#include "common/ring/flagged_poll.hpp"
#include "common/ring/lane_ends.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "common/clock.hpp"
#include "common/device/device.hpp"
#include "common/hash.hpp"
#include "common/threads/threads.hpp"
#include "kernels/workload.hpp"
#include "tests/support/long.hpp"

/// Lanes under load from real threads: every combination of the axes, with random lengths, runs and ring sizes. These
/// tests also run under ThreadSanitizer. (tests/common/ring_model_test.cpp explores small cases in every possible way.)
namespace feedrate {
namespace {

struct LaneAxes {
  Notify notify = Notify::counter;
  ResultOrder results = ResultOrder::in_order;
  unsigned pollers = 1;
  unsigned mirrors = 1;
};
std::string name_of(const LaneAxes& a) {
  return fmt::format("{}_{}_{}_pollers_{}_mirrors", a.notify == Notify::flags ? "flags" : "counter",
                     a.results == ResultOrder::in_order ? "in_order" : "as_finished", a.pollers, a.mirrors);
}
void PrintTo(const LaneAxes& axes, std::ostream* out) { *out << name_of(axes); }
std::vector<LaneAxes> all_axes() {
  std::vector<LaneAxes> all;
  for (const Notify notify : {Notify::counter, Notify::flags}) {
    for (const ResultOrder results : {ResultOrder::in_order, ResultOrder::as_finished}) {
      for (unsigned pollers = 1; pollers <= 4; ++pollers) {
        const unsigned most = notify == Notify::flags ? pollers : 1;
        for (unsigned mirrors = 1; mirrors <= most; ++mirrors) all.push_back({notify, results, pollers, mirrors});
      }
    }
  }
  return all;
}

constexpr std::uint32_t kLongest = 72;  // payload bytes

/// A lane's memory.
struct LaneMemory {
  LaneMemory(const LaneAxes& axes, std::uint64_t capacity)
      : in(capacity * kStride),
        out(capacity * kStride),
        ends(capacity),
        finished(capacity),
        units_in(axes.mirrors * capacity * kUnits),
        units_out(capacity * kUnits) {
    view.ring = ring_at(cursors, in.data(), out.data(), kStride, kStride, capacity);
    view.ends = ends.data();
    view.finished = finished.data();
    view.parking = &parking;
    for (unsigned mirror = 0; mirror < axes.mirrors; ++mirror) {
      view.flagged_in[mirror] = units_in.data() + mirror * capacity * kUnits;
    }
    view.flagged_out = units_out.data();
    view.in_units = view.out_units = units_of(kStride);
    view.in_slot_units = view.out_slot_units = kUnits;
    view.mirrors = axes.mirrors;
    view.notify = axes.notify;
    view.results = axes.results;
  }
  static constexpr std::uint32_t kStride = stride_of(kLongest);
  static constexpr std::uint32_t kUnits = flagged_slot_bytes(kStride) / sizeof(Unit);
  RingCursors cursors{};
  LaneParking parking{};
  std::vector<std::byte> in, out;
  std::vector<std::uint64_t> ends;
  std::vector<std::uint32_t> finished;
  std::vector<Unit> units_in, units_out;
  LaneView view;
};

const Workload& echo() {
  static const auto workload = Workloads::instance().get("--workload", "echo").make({});
  return *workload;
}
/// Pseudo-random length of a message. It is derived from the id, so the collector knows it as well.
std::uint32_t length_of(std::uint64_t id) { return static_cast<std::uint32_t>(mix64(id) % (kLongest + 1)); }
constexpr std::uint64_t kLaneSeed = 5;

constexpr std::uint64_t kLongEnough = 60'000'000'000;  // timeout of a test

/// Stops the pollers when a test ends, even if it fails.
struct StopAtEnd {
  const LaneView& lane;
  ~StopAtEnd() { stop_lane(lane, kStopNow); }
};

/// Sends `count` messages, starting at `first`, in runs of random length.
void produce(LaneProducer& producer, std::uint64_t first, std::uint64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  Backoff backoff;
  const std::uint64_t deadline = now_ns() + kLongEnough;
  for (std::uint64_t next = first; next < first + count;) {
    const Messages room = producer.reserve(std::min<std::uint64_t>(1 + random() % 6, first + count - next));
    const std::size_t n = room.empty() ? 0 : 1 + random() % room.count;  // sometimes fewer than were reserved
    for (std::size_t i = 0; i < n; ++i, ++next) echo().fill(kLaneSeed, next, length_of(next), room.from(i).first(1));
    n == 0 ? backoff.wait() : producer.publish(n);
    if (now_ns() > deadline) return;  // the collector reports the failure
  }
}

/// Takes `count` results, starting at message `first`, in runs of random length, and checks them. Fails after a
/// timeout.
class CollectedLane {
 public:
  CollectedLane(LaneCollector& collector, ResultOrder order, std::uint32_t seed)
      : collector_(collector), order_(order), random_(seed) {}
  void collect(std::uint64_t first, std::uint64_t count) {
    std::vector<char> arrived(count);
    Backoff backoff;
    const std::uint64_t deadline = now_ns() + kLongEnough;
    for (std::uint64_t received = 0; received < count;) {
      const ConstMessages results = collector_.poll(1 + random_() % 6);
      if (results.empty()) {
        ASSERT_LT(now_ns(), deadline) << received << " of " << count << " arrived";
        backoff.wait();
        continue;
      }
      const std::size_t n = 1 + random_() % results.count;
      for (std::size_t i = 0; i < n; ++i, ++received) {
        const Header& header = results.header(i);
        ASSERT_GE(header.id, first);
        ASSERT_LT(header.id, first + count);
        ASSERT_TRUE(order_ == ResultOrder::as_finished || header.id == first + received) << "out of order";
        ASSERT_EQ(std::exchange(arrived[header.id - first], 1), 0) << "twice: " << header.id;
        const ConstMessages one = results.from(i).first(1);
        ASSERT_TRUE(echo().matches(kLaneSeed, header.id, length_of(header.id), one)) << header.id;
      }
      collector_.release(n);
    }
    EXPECT_TRUE(collector_.poll(1).empty()) << "more results than messages";
  }

 private:
  LaneCollector& collector_;
  ResultOrder order_;
  std::mt19937 random_;
};

/// A poller written against LaneServer. If `leaves` is set, it leaves when it finds nothing instead of waiting.
void serve(const LaneView& lane, LaneState& state, const LaneAxes& axes, unsigned poller,
           const std::atomic<bool>& leaves) {
  LaneServer server(lane, &state);
  std::mt19937 random(poller);
  constexpr std::uint64_t kMax = 4;
  std::vector<std::byte> in((kMax - 1) * LaneMemory::kStride + (lane.in_units + 1) * sizeof(Unit)),
      out(LaneMemory::kStride + sizeof(Unit));
  Backoff backoff;
  FlaggedPoll flagged_poll(lane, poller % axes.mirrors, 1 + random() % kMax);
  const auto poll_flagged = [&] {
    FlaggedPoll::Found found;
    if (const Poll polled = flagged_poll(server, in.data(), found); polled != Poll::claimed) return polled;
    const std::uint64_t first = found.claim.first;
    for (std::uint64_t n = first; n < first + found.claim.count; ++n) {
      const std::byte* const message = found.at + (n - first) * LaneMemory::kStride;
      echo().run_on_cpu({message, out.data(), LaneMemory::kStride, LaneMemory::kStride, 1});
      const std::size_t length = payload_bytes(*reinterpret_cast<const Header*>(out.data()));
      store_flagged(lane.unit_out(n), n, out.data(), units_of(sizeof(Header) + length));
    }
    return Poll::claimed;
  };
  const auto poll_counted = [&] {
    Claim claim;
    const Poll polled = server.poll(1 + random() % 4, axes.pollers, claim);
    if (polled != Poll::claimed) return polled;
    echo().run_on_cpu({lane.ring.in_slot(claim.first), lane.ring.out_slot(claim.first), LaneMemory::kStride,
                       LaneMemory::kStride, static_cast<std::uint32_t>(claim.count)});
    if (lane.results == ResultOrder::in_order) {
      server.complete(claim);
    } else {
      for (std::uint64_t i = claim.count; i-- != 0;) server.finish(claim.first + i);
    }
    return polled;
  };
  while (true) {
    const Poll polled = lane.notify == Notify::flags ? poll_flagged() : poll_counted();
    if (polled == Poll::gone) break;
    if (polled == Poll::claimed) continue;
    if (leaves.load() && !flagged_poll.holds()) {
      server.leave(server.next());
    } else {
      backoff.wait();
    }
  }
  server.depart();
}

std::vector<std::jthread> start_pollers(const LaneView& lane, LaneState& state, const LaneAxes& axes,
                                        const std::atomic<bool>& leaves) {
  state = lane_start(lane, axes.pollers);
  std::vector<std::jthread> threads;
  for (unsigned p = 0; p < axes.pollers; ++p) {
    threads.emplace_back([&lane, &state, axes, p, &leaves] { serve(lane, state, axes, p, leaves); });
  }
  return threads;
}

class Lane : public testing::TestWithParam<LaneAxes> {
 protected:
  static constexpr std::uint64_t kMessages = 600;
  static constexpr std::uint64_t kCapacities[] = {1, 2, 4, 16};
};

TEST_P(Lane, ReturnsEachMessageOnceAndCorrect) {
  for (const std::uint64_t capacity : kCapacities) {
    LaneMemory memory(GetParam(), capacity);
    LaneState state;
    const std::atomic<bool> leaves = false;
    auto pollers = start_pollers(memory.view, state, GetParam(), leaves);
    const StopAtEnd stop{memory.view};
    LaneProducer producer(memory.view, 5);
    LaneCollector collector(memory.view, 5);
    std::jthread producing([&] { produce(producer, 0, kMessages, 1); });
    CollectedLane(collector, GetParam().results, 2).collect(0, kMessages);
    producing.join();
    stop_lane(memory.view, kStopNow);
    pollers.clear();
    EXPECT_EQ(memory.parking.parked, 1u);
    EXPECT_EQ(memory.parking.position, kMessages);
    if (HasFatalFailure()) return;
  }
}

/// Pollers leave whenever they find nothing; the pollers started next continue where the previous ones stopped.
TEST_P(Lane, LaterPollersContinueWhereEarlierOnesLeft) {
  LaneMemory memory(GetParam(), 4);
  LaneProducer producer(memory.view, 5);
  LaneCollector collector(memory.view, 5);
  const std::atomic<bool> leaves = true;
  std::jthread producing([&] { produce(producer, 0, kMessages, 1); });
  std::atomic<bool> done = false;
  unsigned generations = 0;
  std::jthread waking([&] {
    LaneState state;
    while (!done) {
      memory.parking.parked = 0;
      start_pollers(memory.view, state, GetParam(), leaves).clear();  // all leave
      EXPECT_EQ(SystemMemory::load_acquire(memory.parking.parked), 1u);
      ++generations;
    }
  });
  CollectedLane(collector, GetParam().results, 2).collect(0, kMessages);
  done = true;
  waking.join();
  EXPECT_EQ(memory.parking.position, kMessages);
  EXPECT_GT(generations, 1u);
}

TEST_P(Lane, StopNowLeavesUnclaimedMessages) {
  LaneMemory memory(GetParam(), 8);
  LaneProducer producer(memory.view, 5);
  produce(producer, 0, 5, 1);
  stop_lane(memory.view, kStopNow);
  LaneState state;
  const std::atomic<bool> leaves = false;
  start_pollers(memory.view, state, GetParam(), leaves).clear();
  LaneCollector collector(memory.view, 5);
  EXPECT_EQ(memory.parking.parked, 1u);
  EXPECT_EQ(memory.parking.position, 0u);
  EXPECT_TRUE(collector.poll(5).empty());
}

TEST_P(Lane, FullLaneHasNoRoomUntilResultsAreReleased) {
  LaneMemory memory(GetParam(), 4);
  LaneProducer producer(memory.view, 16);
  LaneCollector collector(memory.view, 16);
  LaneState state;
  const std::atomic<bool> leaves = false;
  const auto pollers = start_pollers(memory.view, state, GetParam(), leaves);
  const StopAtEnd stop{memory.view};
  produce(producer, 0, 4, 1);
  EXPECT_TRUE(producer.reserve(1).empty());
  Backoff backoff;
  while (collector.poll(16).empty()) backoff.wait();
  EXPECT_TRUE(producer.reserve(1).empty()) << "results must hold their slots until they are released";
  CollectedLane(collector, GetParam().results, 2).collect(0, 4);
  EXPECT_EQ(producer.reserve(16).count, 4u);
}

/// Uses the device's own pollers, which may run on fewer threads than there are pollers.
TEST_P(Lane, IsServedByTheCpuDevice) {
  const auto device = open_cpu_device();
  LaneMemory memory(GetParam(), 16);
  LaneProducer producer(memory.view, 5);
  LaneCollector collector(memory.view, 5);
  const ResidentShape shape{.pollers = GetParam().pollers, .max_flagged_per_poll = 3};
  const auto resident = device->start_resident(echo(), {&memory.view, 1}, shape);
  const StopAtEnd stop{memory.view};
  EXPECT_TRUE(resident->running());
  {
    std::jthread producing([&] { produce(producer, 0, kMessages, 1); });
    CollectedLane(collector, GetParam().results, 2).collect(0, kMessages);
  }
  stop_lane(memory.view, kStopWhenDone);
  while (resident->running()) std::this_thread::yield();
  EXPECT_EQ(memory.parking.position, kMessages);
}

using LaneOfMany = Lane;

/// Occasional lone messages keep a lane awake, no matter which poller gets them.
TEST_P(LaneOfMany, PollersThatNeverClaimDoNotParkABusyLane) {
  const auto device = open_cpu_device();
  LaneMemory memory(GetParam(), 4);
  LaneProducer producer(memory.view, 5);
  LaneCollector collector(memory.view, 5);
  constexpr std::uint64_t kPatience = 300'000'000;
  const ResidentShape shape{.pollers = GetParam().pollers, .idle = {.leave_after_ns = kPatience}};
  const auto resident = device->start_resident(echo(), {&memory.view, 1}, shape);
  const StopAtEnd stop{memory.view};
  const std::uint64_t begin = now_ns();
  std::uint64_t next = 0, last = now_ns();
  for (; now_ns() - begin < 2 * kPatience; ++next) {
    produce(producer, next, 1, 1);
    while (true) {
      const ConstMessages results = collector.poll(1);
      if (results.empty()) {
        if (SystemMemory::load_acquire(memory.parking.parked) != 0) {
          ASSERT_GT(now_ns() - last, kPatience / 2) << "a poller left while messages were arriving, at " << next;
          GTEST_SKIP() << "this machine was too busy to send in time";
        }
        std::this_thread::yield();
        continue;
      }
      collector.release(1);
      break;
    }
    last = now_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  while (SystemMemory::load_acquire(memory.parking.parked) == 0) std::this_thread::yield();
  EXPECT_EQ(memory.parking.position, next) << "the pollers must leave once no messages arrive";
}

INSTANTIATE_TEST_SUITE_P(Axes, Lane, testing::ValuesIn(all_axes()),
                         [](const auto& info) { return name_of(info.param); });

std::vector<LaneAxes> axes_of_many() {
  std::vector<LaneAxes> some = all_axes();
  std::erase_if(some, [](const LaneAxes& axes) { return axes.pollers == 1; });
  return test::thinned(some, 3);  // each takes a second
}
INSTANTIATE_TEST_SUITE_P(Axes, LaneOfMany, testing::ValuesIn(axes_of_many()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace feedrate

#include "feedrate/ring.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/message/stages.hpp"
#include "common/threads/threads.hpp"
#include "kernels/workload.hpp"

namespace feedrate {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

constexpr auto kLong = 20s;  // timeout for results that must arrive

std::unique_ptr<Workload> workload(const char* name) { return Workloads::instance().get("--workload", name).make({}); }

Bytes words(std::initializer_list<std::uint32_t> values) {
  Bytes bytes(values.size() * 4);
  std::memcpy(bytes.data(), std::data(values), bytes.size());
  return bytes;
}
std::uint32_t word_of(const Bytes& bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

/// The kinds of lanes: notified by counter or by flags, slots in device memory, results in order or as finished.
struct RingKind {
  const char* name;
  RingConfig config;
};
void PrintTo(const RingKind& kind, std::ostream* out) { *out << kind.name; }

class EveryRing : public testing::TestWithParam<RingKind> {
 protected:
  RingConfig config(std::size_t capacity = 16) const {
    RingConfig config = GetParam().config;
    config.capacity = capacity;
    config.batch = 8;
    return config;
  }
  std::unique_ptr<Device> device = open_cpu_device();
  std::unique_ptr<Workload> echo = workload("echo");
};

/// Polls until `lane` has results, for at most 20 seconds.
ConstMessages poll_some(RingLane& lane, std::size_t n) {
  const std::uint64_t begin = now_ns();
  ConstMessages results;
  while (results.empty() && now_ns() - begin < 20'000'000'000) {
    results = lane.poll(n);
    if (results.empty()) std::this_thread::yield();
  }
  return results;
}
void send(RingLane& lane, const Workload& work, std::uint64_t first, std::size_t n, std::size_t payload = 64) {
  const Messages room = lane.reserve(n);
  ASSERT_EQ(room.count, n);
  work.fill(1, first, payload, room);
  lane.publish(n);
}

TEST_P(EveryRing, ServesLanesByReserveAndPoll) {
  GpuRing ring(*device, *echo, config());
  ring.start();
  RingLane& lane = ring.lane(0);
  std::uint64_t next = 0;
  std::set<std::uint64_t> missing;
  for (unsigned round = 0; round < 200; ++round) {
    const std::size_t n = 1 + round % 8;
    const Messages room = lane.reserve(n);
    echo->fill(1, next, 60, room);
    for (std::size_t i = 0; i < room.count; ++i) missing.insert(next++);
    lane.publish(room.count);
    while (!missing.empty()) {
      const ConstMessages results = poll_some(lane, 3);
      ASSERT_FALSE(results.empty());
      for (std::size_t i = 0; i < results.count; ++i) {
        EXPECT_TRUE(echo->matches(1, results.header(i).id, 60, results.from(i)));
        EXPECT_EQ(missing.erase(results.header(i).id), 1u);
      }
      lane.release(results.count);
    }
  }
  EXPECT_EQ(ring.stats().published, next);
  EXPECT_EQ(ring.stats().released, next);
  EXPECT_TRUE(ring.stop(RingStop::drain).empty());
}

TEST_P(EveryRing, AnswersSeveralThreads) {
  RingConfig two = config();
  two.lanes = 2;
  GpuRing ring(*device, *echo, two);
  ring.start();
  constexpr unsigned kThreads = 3, kEach = 200;
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        const std::uint32_t sent = t * kEach + i;
        std::optional<std::uint64_t> id;
        while (!(id = ring.try_submit(words({sent, 2 * sent})))) std::this_thread::yield();
        const RingAnswer answer = ring.wait(*id, kLong);
        ASSERT_EQ(answer.status, RingStatus::ok);
        ASSERT_EQ(answer.payload, words({sent + 1, 2 * sent + 1}));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(ring.stats().released, kThreads * kEach);
}

/// A ring as the benchmark uses it: the kernel records when it processes sampled messages.
struct RecordingRing : GpuRing {
  RecordingRing(Device& device, const Kernel& work, const RingConfig& config, const StageRecorder& recorder)
      : GpuRing(device, work, config, recorder) {}
};

TEST_P(EveryRing, PassesStageRecorderToItsKernel) {
  StageClock clock(*device, 1, 16, 4);
  RecordingRing ring(*device, *echo, config(), clock.lasting_recorder());
  ring.start();
  for (std::uint32_t i = 0; i < 8; ++i) {
    const std::uint64_t before = now_ns(), id = ring.try_submit(words({i})).value();
    ASSERT_EQ(ring.wait(id, kLong).status, RingStatus::ok);
    const StageTimes times = clock.times(id);
    const auto at = [&](Stage stage) { return times[static_cast<unsigned>(stage)]; };
    if (i % 4 == 0) {
      EXPECT_GE(at(Stage::kernel_start), before);
      EXPECT_GE(at(Stage::kernel_end), at(Stage::kernel_start));
      EXPECT_LE(at(Stage::kernel_end), now_ns());
      EXPECT_LE(at(Stage::claimed), at(Stage::kernel_start));
      EXPECT_EQ(at(Stage::claimed) != 0, config().notify == Notify::counter) << "flags record no claim time";
    } else {
      EXPECT_EQ(times, StageTimes{});
    }
    clock.forget(id);
  }
}

TEST_P(EveryRing, ReturnsResultsInAnyWaitOrder) {
  GpuRing ring(*device, *echo, config());
  ring.start();
  std::vector<std::uint64_t> ids;
  for (std::uint32_t i = 0; i < 10; ++i) ids.push_back(ring.try_submit(words({i})).value());
  for (std::uint32_t i = 10; i-- != 0;) EXPECT_EQ(word_of(ring.wait(ids[i], kLong).payload), i + 1);
}

TEST_P(EveryRing, FullRingHasRoomAgainAfterAWait) {
  GpuRing ring(*device, *echo, config(4));
  ring.start();
  std::vector<std::uint64_t> ids;
  for (unsigned i = 0; i < 4; ++i) ids.push_back(ring.try_submit(words({i})).value());
  EXPECT_FALSE(ring.try_submit(words({4})).has_value());
  EXPECT_EQ(ring.wait(ids.front(), kLong).status, RingStatus::ok);
  EXPECT_TRUE(ring.try_submit(words({4})).has_value());
}

TEST_P(EveryRing, TimedOutWaitCanBeRepeated) {
  GpuRing ring(*device, *echo, config());
  const std::uint64_t id = ring.try_submit(words({7})).value();  // before the ring is started
  EXPECT_EQ(ring.wait(id, 0ns).status, RingStatus::timeout);
  ring.start();
  EXPECT_EQ(word_of(ring.wait(id, kLong).payload), 8u);
}

TEST_P(EveryRing, RejectsInvalidMessagesAndIds) {
  GpuRing ring(*device, *echo, config());
  EXPECT_THROW(ring.try_submit(Bytes(65)), BadInput);
  EXPECT_NO_THROW(ring.try_submit(Bytes(64)));
  EXPECT_THROW(ring.wait(12345, 0ns), BadInput);
  EXPECT_THROW(ring.wait(message_id(9, 0), 0ns), BadInput);
}

TEST_P(EveryRing, RejectedMessageDoesNotAffectItsNeighbours) {
  const auto vecadd = workload("vecadd");
  GpuRing ring(*device, *vecadd, config());
  ring.start();
  const std::uint64_t before = ring.try_submit(Bytes(32)).value(), wrong = ring.try_submit(Bytes(33)).value(),
                      after = ring.try_submit(Bytes(64)).value();
  EXPECT_EQ(ring.wait(before, kLong).payload, Bytes(16));
  const RingAnswer failed = ring.wait(wrong, kLong);
  EXPECT_EQ(failed.status, RingStatus::failed);
  EXPECT_EQ(failed.fault, Fault::bad_length);
  EXPECT_TRUE(failed.payload.empty());
  EXPECT_EQ(ring.wait(after, kLong).payload, Bytes(32));
}

TEST_P(EveryRing, MessageWithOversizedHeaderFails) {
  GpuRing ring(*device, *echo, config());
  ring.start();
  RingLane& lane = ring.lane(0);
  const Messages room = lane.reserve(3);
  echo->fill(1, 0, 64, room);
  room.header(1).length = 1'000'000;
  lane.publish(3);
  unsigned right = 0;
  for (std::size_t received = 0; received < 3;) {
    const ConstMessages results = poll_some(lane, 3);
    ASSERT_FALSE(results.empty());
    for (std::size_t i = 0; i < results.count; ++i, ++received) {
      const Header& header = results.header(i);
      if (header.id == 1) {
        EXPECT_EQ(header.length, kFailed | static_cast<std::uint32_t>(Fault::too_long));
      } else {
        right += echo->matches(1, header.id, 64, results.from(i)) ? 1 : 0;
      }
    }
    lane.release(results.count);
  }
  EXPECT_EQ(right, 2u);
}

TEST_P(EveryRing, DrainServesAllPublishedMessages) {
  GpuRing ring(*device, *echo, config());
  ring.start();
  std::vector<std::uint64_t> ids;
  for (std::uint32_t i = 0; i < 16; ++i) ids.push_back(ring.try_submit(words({i})).value());
  EXPECT_TRUE(ring.stop(RingStop::drain).empty());
  EXPECT_TRUE(ring.stop(RingStop::now).empty()) << "a second stop must be harmless";
  for (std::uint32_t i = 0; i < 16; ++i) {
    const RingAnswer answer = ring.wait(ids[i], kLong);
    ASSERT_EQ(answer.status, RingStatus::ok) << i;
    EXPECT_EQ(word_of(answer.payload), i + 1);
  }
}

/// A slow workload, so that a stop finds unserved messages.
class Slow : public LaunchedKernel {
 public:
  explicit Slow(const Kernel& work) : work_(work) {}
  void run_on_cpu(const BatchView& batch) const override {
    std::this_thread::sleep_for(20ms * batch.count);
    work_.run_on_cpu(batch);
  }
  void with_cuda_launch(const BatchView&, unsigned, const UseCudaLaunch&) const override {}

 private:
  const Kernel& work_;
};

TEST_P(EveryRing, StopNowNamesExactlyTheUnservedMessages) {
  const Slow slow(*echo);
  GpuRing ring(*device, slow, config());
  ring.start();
  std::vector<std::uint64_t> ids;
  for (std::uint32_t i = 0; i < 4; ++i) ids.push_back(ring.try_submit(words({i})).value());
  ASSERT_EQ(ring.wait(ids[0], kLong).status, RingStatus::ok);
  for (std::uint32_t i = 4; i < 12; ++i) ids.push_back(ring.try_submit(words({i})).value());
  const std::vector<std::uint64_t> named = ring.stop(RingStop::now);
  const std::set<std::uint64_t> open(named.begin(), named.end());
  EXPECT_EQ(open.size(), named.size());
  for (std::uint32_t i = 1; i < 12; ++i) {
    // A message without a result is known at once; a result may still be on its way from the device's memory.
    const bool unserved = open.contains(ids[i]);
    const RingAnswer answer = ring.wait(ids[i], unserved ? 0ns : kLong);
    EXPECT_EQ(answer.status, unserved ? RingStatus::stopped : RingStatus::ok) << i;
    EXPECT_TRUE(answer.status != RingStatus::ok || word_of(answer.payload) == i + 1) << i;
  }
  EXPECT_EQ(ring.stop(RingStop::now), named);
}

TEST_P(EveryRing, DrainsWhileResultsAreCollected) {
  GpuRing ring(*device, *echo, config());
  ring.start();
  RingLane& lane = ring.lane(0);
  send(lane, *echo, 0, 8);
  send(lane, *echo, 8, 8);
  std::jthread collecting([&] {
    for (std::size_t received = 0; received < 16;) {
      const ConstMessages results = poll_some(lane, 3);
      ASSERT_FALSE(results.empty());
      lane.release(results.count);
      received += results.count;
    }
  });
  EXPECT_TRUE(ring.stop(RingStop::drain).empty());
}

TEST_P(EveryRing, NextMessageWakesAParkedLane) {
  RingConfig parks = config();
  parks.idle = RingIdle::park;
  parks.park_after = 2ms;
  GpuRing ring(*device, *echo, parks);
  ring.start();
  for (unsigned round = 1; round <= 5; ++round) {
    const std::uint64_t begin = now_ns();
    while (ring.stats().parked_lanes != 1 && now_ns() - begin < 20'000'000'000) std::this_thread::sleep_for(1ms);
    ASSERT_EQ(ring.stats().parked_lanes, 1u);
    const std::uint64_t id = ring.try_submit(words({round})).value();
    ASSERT_EQ(word_of(ring.wait(id, kLong).payload), round + 1);
    EXPECT_GE(ring.stats().restarts, round);
    EXPECT_NO_THROW(ring.check());
  }
  const std::uint64_t id = ring.try_submit(words({1})).value();
  EXPECT_TRUE(ring.stop(RingStop::drain).empty()) << "drain must wake a parked lane";
  EXPECT_EQ(ring.wait(id, kLong).status, RingStatus::ok);
}

TEST_P(EveryRing, UnpublishedMessagesOfADeadProducerAreIgnored) {
  GpuRing ring(*device, *echo, config());
  ring.start();
  RingLane& lane = ring.lane(0);
  std::jthread([&] {
    const Messages room = lane.reserve(5);
    for (std::size_t i = 0; i < room.count; ++i) room.header(i) = {999, 64, 0};
  }).join();
  std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(lane.poll(8).empty());
  send(lane, *echo, 0, 8);
  for (std::size_t received = 0; received < 8;) {
    const ConstMessages results = poll_some(lane, 8);
    ASSERT_FALSE(results.empty());
    for (std::size_t i = 0; i < results.count; ++i)
      EXPECT_TRUE(echo->matches(1, results.header(i).id, 64, results.from(i)));
    lane.release(results.count);
    received += results.count;
  }
  EXPECT_TRUE(ring.stop(RingStop::drain).empty());
}

TEST_P(EveryRing, TwoRingsRunInOneProcess) {
  const auto vecadd = workload("vecadd");
  GpuRing first(*device, *echo, config()), second(*device, *vecadd, config());
  first.start();
  second.start();
  for (std::uint32_t i = 0; i < 50; ++i) {
    const std::uint64_t a = first.try_submit(words({i})).value(), b = second.try_submit(Bytes(32)).value();
    ASSERT_EQ(word_of(first.wait(a, kLong).payload), i + 1);
    ASSERT_EQ(second.wait(b, kLong).payload, Bytes(16));
  }
  first.stop(RingStop::now);
  const std::uint64_t b = second.try_submit(Bytes(64)).value();
  EXPECT_EQ(second.wait(b, kLong).payload, Bytes(32)) << "stopping one ring must not stop the other";
}

RingConfig with(auto change) {
  RingConfig config;
  change(config);
  return config;
}
INSTANTIATE_TEST_SUITE_P(Kinds, EveryRing,
                         testing::Values(RingKind{"counter", {}},
                                         RingKind{"counter_four_pollers", with([](auto& c) { c.pollers = 4; })},
                                         RingKind{"counter_as_finished", with([](auto& c) {
                                                    c.pollers = 2;
                                                    c.results = ResultOrder::as_finished;
                                                  })},
                                         RingKind{"flags", with([](auto& c) { c.notify = Notify::flags; })},
                                         RingKind{"flags_mirrors_as_finished", with([](auto& c) {
                                                    c.notify = Notify::flags;
                                                    c.pollers = 4;
                                                    c.mirrors = 2;
                                                    c.results = ResultOrder::as_finished;
                                                  })},
                                         RingKind{"vram", with([](auto& c) { c.slots = Slots::vram; })}),
                         [](const auto& info) { return info.param.name; });

TEST(GpuRing, StartsOnlyOnce) {
  const auto device = open_cpu_device();
  const auto echo = workload("echo");
  GpuRing ring(*device, *echo, {});
  ring.start();
  EXPECT_THROW(ring.start(), BadInput);
}

TEST(GpuRing, ExplainsWhyAConfigIsInvalid) {
  struct Wrong {
    const char* said;
    RingConfig config;
  };
  const Wrong wrong[] = {
      {"power of two", with([](auto& c) { c.capacity = 12; })},
      {"power of two", with([](auto& c) { c.capacity = 0; })},
      {"power of two", with([](auto& c) { c.capacity = std::size_t{1} << 25; })},
      {"at least one lane", with([](auto& c) { c.lanes = 0; })},
      {"at least one", with([](auto& c) { c.batch = 0; })},
      {"cannot be split", with([](auto& c) { c.pollers = 0; })},
      {"cannot be split", with([](auto& c) { c.pollers = 3; })},
      {"cannot be split", with([](auto& c) {
         c.block = 1024;
         c.pollers = 32;
       })},
      {"cannot be split", with([](auto& c) { c.block = 48; })},
      {"cannot be split", with([](auto& c) { c.block = 2048; })},
      {"each mirror needs a poller", with([](auto& c) {
         c.notify = Notify::flags;
         c.mirrors = 2;
       })},
      {"mirrors", with([](auto& c) { c.mirrors = 0; })},
      {"require notification by flags", with([](auto& c) { c.pollers = c.mirrors = 2; })},
      {"in order", with([](auto& c) {
         c.slots = Slots::vram;
         c.results = ResultOrder::as_finished;
       })},
      {"notification by counter", with([](auto& c) {
         c.slots = Slots::vram;
         c.notify = Notify::flags;
       })},
      {"reads at once", with([](auto& c) {
         c.notify = Notify::flags;
         c.message_bytes = 1 << 20;
       })},
      {"shared memory", with([](auto& c) {
         c.notify = Notify::flags;
         c.block = 1024;
         c.message_bytes = c.result_bytes = 20'000;
       })},
  };
  const auto device = open_cpu_device();
  const auto echo = workload("echo");
  for (const auto& [said, config] : wrong) {
    EXPECT_NE(why_unsupported(config).find(said), std::string::npos)
        << "expected '" << said << "' in: " << why_unsupported(config);
    EXPECT_THROW(GpuRing(*device, *echo, config), BadInput) << said;
  }
  EXPECT_EQ(why_unsupported({}), "");
}

}  // namespace
}  // namespace feedrate

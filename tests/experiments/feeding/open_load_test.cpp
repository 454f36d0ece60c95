#include <thread>
#include <vector>

#include "common/clock.hpp"
#include "common/threads/threads.hpp"
#include "experiments/feeding/load.hpp"
#include "experiments/harness/load/open_load.hpp"
#include "tests/support/cells.hpp"
#include "tests/support/echo_like.hpp"
#include "variants/feeding/queues/ring_memory.hpp"

/// Open load on queues that misbehave: the row must describe what happened.
namespace feedrate::test {
namespace {

/// Serves a ring with a thread that freezes once or is slow with every batch.
class ReluctantQueue final : public Queue {
 public:
  struct Manner {
    std::chrono::milliseconds freezes_after{-1}, freezes_for{0};
    std::chrono::microseconds per_message{0};
  };
  ReluctantQueue(const QueueConfig& config, Manner manner)
      : config_(config),
        manner_(manner),
        memory_(config.device, HostMemory::pageable, config.in_stride(), config.out_stride(),
                ring_capacity(config.point)) {}
  std::unique_ptr<Producer> producer(unsigned) override { return std::make_unique<RingIn>(memory_.view()); }
  std::unique_ptr<Collector> collector(unsigned) override { return std::make_unique<RingOut>(memory_.view()); }
  void start() override {
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  void stop(bool) override { thread_ = {}; }
  Cost cost() const override { return {.host_threads = 1}; }

 private:
  void serve(const std::stop_token& stop) {
    const RingView ring = memory_.view();
    RingServer server(ring);
    Backoff backoff;
    const std::uint64_t freeze_at = now_ns() + static_cast<std::uint64_t>(manner_.freezes_after.count()) * 1'000'000;
    bool will_freeze = manner_.freezes_after.count() >= 0;
    while (!stop.stop_requested()) {
      if (will_freeze && now_ns() > freeze_at) {
        will_freeze = false;
        std::this_thread::sleep_for(manner_.freezes_for);
      }
      const std::uint64_t first = server.taken(), n = ring.contiguous(first, server.waiting());
      if (n == 0) {
        backoff.wait();
        continue;
      }
      backoff.reset();
      config_.workload.run_on_cpu(
          {ring.in_slot(first), ring.out_slot(first), ring.in_stride, ring.out_stride, static_cast<std::uint32_t>(n)});
      if (manner_.per_message.count() != 0) std::this_thread::sleep_for(n * manner_.per_message);
      server.take(n);
      server.complete(n);
    }
  }

  QueueConfig config_;
  Manner manner_;
  RingMemory memory_;
  std::jthread thread_;
};

QueueEntry reluctant(ReluctantQueue::Manner manner) {
  return {.description = "test: reluctant",
          .make = [manner](const QueueConfig& config) { return std::make_unique<ReluctantQueue>(config, manner); }};
}
using std::chrono::microseconds;
using std::chrono::milliseconds;
const QueueRegistration freezing("test_freezing", reluctant({milliseconds(200), milliseconds(400), microseconds(0)}));
const QueueRegistration sluggish("test_slow", reluctant({milliseconds(-1), milliseconds(0), microseconds(200)}));
const QueueRegistration prompt("test_prompt", reluctant({}));

/// An echo whose messages take long to generate, which is the generator's fault, not the queue's.
struct SlowToMake : EchoLike<SlowToMake> {
  static constexpr auto kName = "test_slow_to_make";
  static constexpr auto kDescription = "test: messages take 300 us to generate";
  static void shape(std::byte*, std::size_t) {
    const std::uint64_t end = now_ns() + 300'000;
    while (now_ns() < end) {
    }
  }
  static Checked check(std::uint64_t, std::size_t, ConstMessages results, std::uint64_t* ids) {
    for (std::size_t i = 0; i < results.count; ++i) ids[i] = results.header(i).id;
    return {true, false, results.header(0).id};
  }
};
const WorkloadRegistration<SlowToMake> slow_to_make;

/// An echo whose message number 200 takes 200 ms to generate.
struct OnceSlowToMake : EchoLike<OnceSlowToMake> {
  static constexpr auto kName = "test_once_slow_to_make";
  static constexpr auto kDescription = "test: one message takes 200 ms to generate";
  static void shape(std::byte*, std::size_t) {
    static std::atomic<int> made{0};
    if (++made != 200) return;
    const std::uint64_t end = now_ns() + 200'000'000;
    while (now_ns() < end) {
    }
  }
  static Checked check(std::uint64_t, std::size_t, ConstMessages results, std::uint64_t* ids) {
    for (std::size_t i = 0; i < results.count; ++i) ids[i] = results.header(i).id;
    return {true, false, results.header(0).id};
  }
};
const WorkloadRegistration<OnceSlowToMake> once_slow_to_make;

Point open_point(const std::string& queue, std::uint64_t rate) {
  Point point;
  point.queue = queue;
  point.device = "cpu";
  point.arrivals = "constant";
  point.rate = rate;
  return point;
}

Json run_open(const Point& point, double seconds, double warmup = 0) {
  RunSettings settings;
  settings.seconds = seconds;
  settings.warmup_seconds = warmup;
  settings.keep_disturbed = true;
  return run_cell(point, settings);
}

/// Share of a row's histogram above `ns`.
double share_above(const Json& latency, double ns) {
  double above = 0, all = 0;
  const Json& histogram = latency["histogram"];
  for (std::size_t i = 0; i < histogram["index"].size(); ++i) {
    const auto count = histogram["counts"][i].get<double>();
    all += count;
    if (static_cast<double>(Histogram::lowest(histogram["index"][i])) > ns) above += count;
  }
  return above / all;
}

// The server freezes for 0.4 s of 1 s: half of the messages due during the freeze wait for at least half of it. Other
// work on the machine makes more messages late, never fewer.
TEST(OpenLoad, ServerFreezeDelaysAllMessagesDueDuringIt) {
  Point point = open_point("test_freezing", 2'500);
  point.window = 64;  // the rest waits outside the queue, where a clock that starts at sending does not count it
  const Json row = run_open(point, 1);
  ASSERT_TRUE(row.contains("figures")) << row.dump(1);
  EXPECT_EQ(row["details"]["counts"]["lost"], 0);
  EXPECT_GT(row["details"]["counts"]["received"], 2'000)
      << "of 2500 messages; a crowded machine may not catch up in time";
  const Json& figures = row["figures"];
  EXPECT_GT(share_above(figures["latency_ns"], 200e6), 0.75 * 0.2);
  EXPECT_GT(share_above(figures["send_lag_ns"], 200e6), 0.75 * 0.2);
  EXPECT_GT(figures["latency_ns"]["max"], 0.38e9);
  EXPECT_LT(share_above(figures["service_ns"], 200e6), 0.5 * 0.2) << "only the window was in flight";
}

TEST(OpenLoad, QueueThatCannotKeepUpIsUnsustainable) {
  const Json row = run_open(open_point("test_slow", 20'000), 0.5);  // the queue serves at most 5000 per second
  // On a crowded machine the load generator itself may be slower than the queue.
  EXPECT_TRUE(row["status"] == "unsustainable" || row["cause"] == "driver_bound") << row.dump(1);
  EXPECT_NE(row["reason"].get<std::string>().find("never sent"), std::string::npos);
  EXPECT_GT(row["details"]["load"]["backlog"]["per_second"], 2'000) << "15'000 if the generator is never interrupted";
  EXPECT_GT(row["details"]["load"]["blocked_share"], 0.5);
  EXPECT_EQ(row["details"]["counts"]["lost"], 0);
  EXPECT_EQ(row["details"]["load"]["due"], 10'000);
  EXPECT_GT(row["details"]["load"]["unsent"], 0);
}

bool has_flag(const Json& row, const char* flag) {
  const Json flags = row.value("flags", Json::array());
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

TEST(OpenLoad, GeneratorThatFallsBehindIsFlagged) {
  Point point = open_point("test_prompt", 2000);
  point.workload = "test_slow_to_make";
  point.arrivals = "bursts";
  point.burst_us = 1000;
  point.pause_us = 9000;
  const Json row = run_open(point, 0.5);
  EXPECT_TRUE(has_flag(row, "late_generator")) << row.dump(1);
  EXPECT_LT(row["details"]["load"]["blocked_share"], 0.1);
}

TEST(OpenLoad, GeneratorThatIsAlwaysTooSlowInvalidatesTheRow) {
  Point point = open_point("test_prompt", 20'000);
  point.workload = "test_slow_to_make";  // at most 3300 per second
  const Json row = run_open(point, 0.3);
  EXPECT_EQ(row["status"], "invalid") << row["reason"];
  EXPECT_TRUE(row["reason"].get<std::string>().starts_with("generator: ")) << row["reason"];
}

/// `count` of 10'000 messages, each of which normally takes 5 us. The generator sends these `late_ns` late, and the
/// queue takes `slow_ns` longer.
struct Some {
  int count;
  std::uint64_t late_ns, slow_ns;
};

Json judged(const std::vector<Some>& some, double pause_ns = 0) {
  PassResult pass;
  pass.seconds = 1;
  pass.due = pass.received = 10'000;
  int rest = 10'000;
  const auto record = [&](const Some& these) {
    for (int i = 0; i < these.count; ++i) {
      pass.latency.record(5'000 + these.late_ns + these.slow_ns);
      pass.without_own_lag.record(5'000 + these.slow_ns);
      pass.own_lag.record(these.late_ns);
    }
    rest -= these.count;
  };
  for (const Some& these : some) record(these);
  record({rest, 0, 0});
  Measurement measured;
  const Point point = open_point("test_prompt", 10'000);
  describe_open_load(pass, {point.batch, point.producers, 1, pause_ns}, measured);
  EXPECT_EQ(measured.status, Status::ok) << "the response times must still be valid";
  const bool late = measured.flags.contains(Flag::late_generator);
  EXPECT_EQ(measured.details["load"].contains("late"), late);
  return {{"late", late}, {"details", measured.details}};
}

TEST(OpenLoad, GeneratorIsFlaggedOnlyForLagThatMovesThePercentile) {
  const Json row = judged({{200, 80'000, 40'000}});
  EXPECT_EQ(row["late"], true);
  const std::string late = row["details"]["load"]["late"];
  EXPECT_NE(late.find("without the generator's own lag, 44.9"), std::string::npos) << late;
  EXPECT_NEAR(row["details"]["load"]["without_own_lag_ns"]["p99"], 45'000, 500);
  // The generator was late for messages that do not determine the percentile.
  EXPECT_EQ(judged({{90, 80'000, 0}, {310, 0, 40'000}})["late"], false);
}

TEST(OpenLoad, GeneratorIsNotFlaggedForPausesOfTheHost) {
  EXPECT_EQ(judged({{200, 8'000, 0}})["late"], true);
  EXPECT_EQ(judged({{200, 8'000, 0}}, 4'500)["late"], false);   // no thread of this host would be on time
  EXPECT_EQ(judged({{200, 80'000, 0}}, 45'000)["late"], true);  // on such a host the cause is unknown
  EXPECT_EQ(judged({{5'200, 8'000, 0}}, 4'500)["late"], true);  // pauses do not make half of the messages late
}

TEST(OpenLoad, GeneratorStallCountsAsItsOwnLag) {
  Point point = open_point("test_prompt", 2'000);
  point.workload = "test_once_slow_to_make";
  const Json row = run_open(point, 0.5);
  EXPECT_TRUE(has_flag(row, "late_generator")) << row.dump(1);
  const double lag = row["figures"]["send_lag_ns"]["p99"];
  EXPECT_GT(lag, 150e6);  // two fifths of the messages waited, up to 200 ms
  // The rest is the wait for free slots, since all late messages are sent at once.
  EXPECT_GT(row["details"]["load"]["own_lag_ns"]["p99"].get<double>(), 0.5 * lag);
}

TEST(OpenLoad, EveryMessageOfALowRateIsTimed) {
  Point point = open_point("gpu_ring", 20);
  point.arrivals = "poisson";
  const Json row = run_open(point, 1, 0.01);  // almost no message is due in the warm-up
  EXPECT_EQ(row["figures"]["latency_ns"]["sampled_every"], 1);
  EXPECT_EQ(row["figures"]["latency_ns"]["samples"], row["details"]["load"]["due"]);
  EXPECT_LT(row["details"]["counts"]["sent"], 60) << "no closed load precedes the open load";
}

TEST(OpenLoad, ArrivalsDifferByRepetitionButNotByQueue) {
  RunSettings settings = brief();
  settings.messages = 0;
  settings.seconds = 0.1;
  Session session("feeding", "cpu", 0, {}, "test", settings);
  Point point = open_point("gpu_ring", 10'000);
  point.arrivals = "poisson";
  const auto due = [&](unsigned repetition) { return run_cell(session, point, repetition)["details"]["load"]["due"]; };
  const Json first = due(0);
  EXPECT_EQ(first, due(0));
  EXPECT_NE(first, due(1));
  point.queue = "host_polled";
  EXPECT_EQ(first, due(0));
}

TEST(OpenLoad, FiguresAddUp) {
  const Json row = run_open(open_point("gpu_ring", 5000), 1);
  EXPECT_EQ(row["details"]["load"]["due"], 5000);
  EXPECT_EQ(row["details"]["counts"]["sent"], 5000);
  EXPECT_EQ(row["details"]["counts"]["received"], 5000);
  EXPECT_LT(row["figures"]["messages_per_second"], 5100);  // lower on a busy machine, where the run ends late
  const auto mean = [&](const char* name) { return row["figures"][name]["mean"].get<double>(); };
  EXPECT_NEAR(mean("latency_ns"), mean("service_ns") + mean("send_lag_ns"), 0.02 * mean("latency_ns"));
  EXPECT_EQ(row["figures"]["latency_ns"]["samples"], row["figures"]["service_ns"]["samples"]);
}

TEST(OpenLoad, EveryQueueCarriesSizesAndPriorities) {
  for (const char* queue : {"null", "gpu_ring", "host_polled"}) {
    Point point = open_point(queue, 20'000);
    point.producers = 3;
    point.arrivals = "poisson";
    point.payload_mix = "0:1,64:5,100:1,4Ki:1";
    point.priority_mix = "0:0.2,3:0.8";
    const Json row = run_open(point, 0.4, 0.1);
    for (const char* wrong : {"lost", "duplicated", "corrupted"})
      EXPECT_EQ(row["details"]["counts"][wrong], 0) << queue << wrong;
    EXPECT_EQ(row["params"]["payload_bytes"], 4096);
    ASSERT_TRUE(row["details"].contains("priorities_ns")) << row.dump(1);
    const double high = row["details"]["priorities_ns"]["0"]["samples"],
                 low = row["details"]["priorities_ns"]["3"]["samples"];
    EXPECT_NEAR(high / (high + low), 0.2, 0.03) << queue;
    const double bytes = row["figures"]["bytes_per_second"], messages = row["figures"]["messages_per_second"];
    EXPECT_NEAR(bytes / messages, (5 * 64 + 100 + 4096) / 8.0, 60) << queue;
  }
}

TEST(Trends, TrendOfABacklogIsItsSlope) {
  std::vector<double> level(1000), growing(1000);
  for (std::size_t i = 0; i < level.size(); ++i) {
    level[i] = static_cast<double>(i * 7919 % 100);
    growing[i] = level[i] + static_cast<double>(i);
  }
  EXPECT_NEAR(backlog_of(growing, 1).per_second, 1000, 20);
  EXPECT_NEAR(backlog_of(growing, 2).per_second, 500, 10) << "the readings are 2 ms apart";
  EXPECT_LT(std::abs(backlog_of(level, 1).per_second), 20);
  EXPECT_NEAR(backlog_of(growing, 1).begin, 99.5, 5);
  EXPECT_NEAR(backlog_of(growing, 1).end, 999, 5);
}

}  // namespace
}  // namespace feedrate::test

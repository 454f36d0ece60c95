#include <thread>

#include "tests/support/cells.hpp"
#include "tests/support/echo_like.hpp"
#include "variants/feeding/queues/ring_memory.hpp"

/// Queues and a workload with deliberate faults: the load generator must detect each fault, and the row must have no
/// throughput.
namespace feedrate::test {
namespace {

/// Echoes messages, but changes one bit in one of a thousand messages.
struct WrongEcho : EchoLike<WrongEcho> {
  static constexpr auto kName = "wrong_echo";
  static constexpr auto kDescription = "test: rarely wrong";
  FEEDRATE_HD void meddle(std::uint64_t id, std::size_t i, Vec16& piece) const {
    if (id % 1000 == 999 && i == 0) piece.word[1] ^= 64;
  }
};
const WorkloadRegistration<WrongEcho> wrong_echo;

/// Fault that a queue injects into the 100th message.
enum class Fault100 { lose, duplicate, swap, foreign_id };

/// Processes messages in the producer's own thread and injects the fault.
class FaultyQueue final : public Queue {
 public:
  FaultyQueue(const QueueConfig& config, Fault100 fault)
      : config_(config),
        fault_(fault),
        memory_(config.device, HostMemory::pageable, config.in_stride(), config.out_stride(), 4096) {}
  std::unique_ptr<Producer> producer(unsigned) override { return std::make_unique<In>(*this); }
  std::unique_ptr<Collector> collector(unsigned) override { return std::make_unique<RingOut>(memory_.view()); }
  void start() override {}
  void stop(bool) override {}
  Cost cost() const override { return {}; }

 private:
  struct In final : Producer {
    explicit In(FaultyQueue& queue)
        : queue(queue), view(queue.memory_.view()), server(view), slots(queue.config_.in_stride() * 64) {}
    Messages reserve(std::size_t n) override {
      return {slots.data(), queue.config_.in_stride(), std::min<std::size_t>(n, 64)};
    }
    void publish(std::size_t n) override {
      for (std::size_t i = 0; i < n; ++i) {
        const Messages one{slots.data() + i * queue.config_.in_stride(), queue.config_.in_stride(), 1};
        const bool now = ++count == 100;
        if (now && queue.fault_ == Fault100::lose) continue;
        if (now && queue.fault_ == Fault100::swap) {
          held.assign(one.base, one.base + one.stride);
          continue;
        }
        if (now && queue.fault_ == Fault100::foreign_id) one.header(0).id += 1'000'000;
        work(one);
        if (now && queue.fault_ == Fault100::duplicate) work(one);
        if (!held.empty()) {
          work({held.data(), one.stride, 1});
          held.clear();
        }
      }
    }
    void work(const Messages& one) {
      while (done - SystemMemory::load_acquire(*view.released) >= view.capacity) std::this_thread::yield();
      queue.config_.workload.run_on_cpu({one.base, view.out_slot(done), view.in_stride, view.out_stride, 1});
      ++done;
      server.complete(1);
    }
    FaultyQueue& queue;
    RingView view;
    RingServer server;
    std::vector<std::byte> slots, held;
    std::uint64_t count = 0, done = 0;
  };
  QueueConfig config_;
  Fault100 fault_;
  RingMemory memory_;
};

QueueRegistration faulty(const char* name, Fault100 fault) {
  return {name, {.description = "test", .make = [fault](const QueueConfig& config) {
                   return std::make_unique<FaultyQueue>(config, fault);
                 }}};
}
const QueueRegistration loses = faulty("loses", Fault100::lose);
const QueueRegistration duplicates = faulty("duplicates", Fault100::duplicate);
const QueueRegistration swaps = faulty("swaps", Fault100::swap);
const QueueRegistration foreign = faulty("foreign", Fault100::foreign_id);

Json run_faulty(const std::string& queue) {
  RunSettings settings = brief(2000);
  settings.watchdog_seconds = 0.3;
  Point point;
  point.queue = queue;
  return run_cell(point, settings);
}

TEST(Detection, WrongKernelIsReportedAsCorruptedWithoutThroughput) {
  for (const char* queue : {"gpu_ring", "host_polled"}) {
    Point point;
    point.queue = queue;
    point.workload = "wrong_echo";
    const Json row = run_cell(point, brief(5000));
    EXPECT_EQ(row["status"], "failed");
    EXPECT_EQ(row["details"]["counts"]["corrupted"], 5);
    EXPECT_EQ(row["details"]["counts"]["lost"], 0);
    EXPECT_FALSE(row.contains("figures"));
    const std::string reason = row["reason"];
    EXPECT_NE(reason.find("5 corrupted"), std::string::npos) << reason;
    // The reason names the first wrong message and the expected and found words, which differ in one bit.
    const auto at = reason.find("message 999 of producer 0: in the word at byte 4 expected 0x");
    ASSERT_NE(at, std::string::npos) << reason;
    const auto word = [&](const std::string& before) {
      return std::stoul(reason.substr(reason.find(before, at) + before.size(), 10), nullptr, 16);
    };
    EXPECT_EQ(word("expected ") ^ word("found "), 64u) << reason;
  }
}

TEST(Detection, LostMessageIsCountedAndTriggersTheWatchdog) {
  const Json row = run_faulty("loses");
  EXPECT_EQ(row["status"], "failed");
  EXPECT_EQ(row["details"]["counts"]["lost"], 1);
  EXPECT_NE(row["reason"].get<std::string>().find("watchdog"), std::string::npos);
  EXPECT_FALSE(row.contains("figures"));
}

TEST(Detection, DuplicatedMessageIsCounted) {
  const Json row = run_faulty("duplicates");
  EXPECT_EQ(row["status"], "failed");
  EXPECT_EQ(row["details"]["counts"]["duplicated"], 1);
  EXPECT_EQ(row["details"]["counts"]["lost"], 0);
  EXPECT_FALSE(row.contains("figures"));
}

TEST(Detection, ReorderedMessageIsCountedButNotAnError) {
  const Json row = run_faulty("swaps");
  EXPECT_EQ(row["details"]["counts"]["reordered"], 1);
  EXPECT_EQ(row["details"]["counts"]["corrupted"], 0);
  EXPECT_TRUE(row.contains("figures"));
}

TEST(Detection, UnknownIdIsCorruptedAndItsMessageLost) {
  const Json row = run_faulty("foreign");
  EXPECT_EQ(row["details"]["counts"]["corrupted"], 1);
  EXPECT_EQ(row["details"]["counts"]["lost"], 1);
  EXPECT_FALSE(row.contains("figures"));
}

}  // namespace
}  // namespace feedrate::test

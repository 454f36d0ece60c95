#include "experiments/feeding/generator_limit.hpp"

#include <atomic>
#include <thread>

#include "tests/support/cells.hpp"
#include "tests/support/echo_like.hpp"
#include "tests/support/prompt_queue.hpp"

namespace feedrate::test {
namespace {

/// While set, each message of the `paced` workload takes 20 ms to generate, far longer than even a busy machine takes
/// for any other message.
std::atomic<bool> slow{false};
struct Paced : EchoLike<Paced> {
  static constexpr auto kName = "paced";
  static constexpr auto kDescription = "test: sometimes slow to generate";
  static void shape(std::byte*, std::size_t) {
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  static Checked check(std::uint64_t, std::size_t, ConstMessages results, std::uint64_t* ids) {
    for (std::size_t i = 0; i < results.count; ++i) ids[i] = results.header(i).id;
    return {true, false, 0};
  }
};
const WorkloadRegistration<Paced> paced;

/// While the queue exists, `now` determines whether messages are slow to generate. Afterwards, and thus for the
/// generator-only point, the opposite holds.
class Pacing final : public PromptQueue {
 public:
  Pacing(const QueueConfig& config, bool now) : PromptQueue(config), now_(now) { slow = now_; }
  ~Pacing() override { slow = !now_; }

 private:
  bool now_;
};
QueueRegistration pacing(const char* name, bool now) {
  return {name, {.description = "test", .make = [now](const QueueConfig& config) {
                   return std::make_unique<Pacing>(config, now);
                 }}};
}
const QueueRegistration slower = pacing("slower_than_driver", true), faster = pacing("faster_than_driver", false);

Point paced_point(const std::string& queue) {
  Point point;
  point.queue = queue;
  point.workload = "paced";
  point.window = point.batch = 8;
  return point;
}

TEST(GeneratorLimit, RowAboveTheGeneratorsRateIsGeneratorBound) {
  const Json row = run_cell(paced_point("faster_than_driver"), brief(20'000));
  EXPECT_EQ(row["status"], "invalid") << row.dump(1);
  EXPECT_EQ(row["cause"], "driver_bound");
  EXPECT_GT(row["details"]["driver"]["ratio"], 2);
}

TEST(GeneratorLimit, RowFarBelowTheGeneratorsRateIsNotGeneratorBound) {
  const Json row = run_cell(paced_point("slower_than_driver"), brief(50));
  EXPECT_EQ(row["status"], "ok") << row.dump(1);
  EXPECT_LT(row["details"]["driver"]["ratio"], 0.5);
}

TEST(GeneratorLimit, ThresholdIsNineTenthsOfTheFastestRun) {
  const GeneratorLimit limit{.median = 100, .least = 10, .greatest = 1000};
  EXPECT_FALSE(generator_bound(890, limit));
  EXPECT_TRUE(generator_bound(910, limit));
}

TEST(GeneratorLimit, SummaryHasTheRangeAndTheMedian) {
  const GeneratorLimit limit = generator_limit_of({5, 900, 4, 1, 6});
  EXPECT_EQ(limit.median, 5);
  EXPECT_EQ(limit.least, 1);
  EXPECT_EQ(limit.greatest, 900);
}

/// A queue after which the generator is slow in every second cell.
class Alternating final : public PromptQueue {
 public:
  explicit Alternating(const QueueConfig& config) : PromptQueue(config) { slow = false; }
  ~Alternating() override { slow = ++cells % 2 == 0; }
  static inline unsigned cells = 0;
};
const QueueRegistration alternating{"alternating", {.description = "test", .make = make_queue<Alternating>}};

TEST(GeneratorLimit, LimitIsMeasuredAfterEachCell) {
  Session session("feeding", "cpu", 0, {}, "test", brief(2'000));
  std::vector<double> limits;
  for (unsigned repetition = 0; repetition < 4; ++repetition) {
    const Json row = run_cell(session, paced_point("alternating"), repetition)["details"]["driver"];
    EXPECT_EQ(row["runs"], kGeneratorRuns);
    EXPECT_LE(row["least"], row["messages_per_second"]);
    EXPECT_LE(row["messages_per_second"], row["greatest"]);
    limits.push_back(row["messages_per_second"]);
  }
  for (const double slower : {limits[1], limits[3]}) {
    for (const double faster : {limits[0], limits[2]}) EXPECT_GT(faster, 2 * slower);
  }
}

TEST(GeneratorLimit, GeneratorOnlyPointHasTheSameFootprint) {
  const auto device = open_device("cpu");
  Point point;
  const Point generator_point = generator_point_of(point, *device);
  EXPECT_EQ(generator_point.queue, "null");
  EXPECT_EQ(generator_point.payload, point.payload);
  EXPECT_EQ(generator_point.capacity, point.window) << "the number of slots must be the same";
  const auto with = [&](auto&& change) {
    Point changed = point;
    change(changed);
    return generator_point_of(changed, *device);
  };
  EXPECT_EQ(with([](Point& p) { p.queue = "host_polled"; }), generator_point);
  EXPECT_EQ(with([](Point& p) { p.capacity = p.window; }), generator_point);
  EXPECT_EQ(with([](Point& p) { p.arrivals = "poisson", p.rate = 1000; }), generator_point);
  EXPECT_NE(with([](Point& p) { p.payload *= 2; }), generator_point);
  EXPECT_NE(with([](Point& p) { p.window *= 2; }), generator_point);
  EXPECT_NE(with([](Point& p) { p.producers = 2; }), generator_point);
  EXPECT_NE(with([](Point& p) { p.workload = "scale"; }), generator_point);
}

}  // namespace
}  // namespace feedrate::test

#include "experiments/feeding/stamped.hpp"
#include "tests/support/cells.hpp"
#include "tests/support/prompt_queue.hpp"

namespace feedrate::test {
namespace {

Point stamped_point(const std::string& queue) {
  Point point;
  point.queue = queue;
  point.payload = 4096;
  point.window = 64;
  point.batch = 8;
  point.touch = "stamp";
  return point;
}

/// Returns each result with one wrong bit in this byte of its payload.
class Marring final : public PromptQueue {
 public:
  Marring(const QueueConfig& config, std::size_t byte) : PromptQueue(config), byte_(byte) {}

 private:
  void after_work(const Messages& result) override { result.payload(0)[byte_] ^= std::byte{1}; }
  std::size_t byte_;
};
QueueRegistration marring(const char* name, std::size_t byte) {
  return {name, {.description = "test", .make = [byte](const QueueConfig& config) {
                   return std::make_unique<Marring>(config, byte);
                 }}};
}
const QueueRegistration mars_stamps = marring("mars_stamps", 9), mars_rests = marring("mars_rests", 3000);

TEST(Touch, EveryQueueReturnsStampedMessagesCorrectly) {
  for (const char* queue : {"gpu_ring", "host_polled", "null"}) {
    for (const char* workload : {"echo", "vecadd"}) {
      Point point = stamped_point(queue);
      point.workload = workload;
      point.producers = 2;
      const Json row = run_cell(point, brief(3000));
      expect_clean(row);
      EXPECT_EQ(row["params"]["touch"], "stamp");
      EXPECT_NE(row["details"]["checked"].get<std::string>().find("stamp"), std::string::npos) << row["details"];
    }
  }
}

TEST(Touch, RowRecordsThatAllBytesAreTouched) {
  Point point = stamped_point("gpu_ring");
  point.touch = "all";
  const Json row = run_cell(point, brief(1000));
  EXPECT_EQ(row["params"]["touch"], "all");
  EXPECT_EQ(row["details"]["checked"], "each against its own expected bytes");
}

TEST(Touch, EveryWrongStampIsCounted) {
  const Json row = run_cell(stamped_point("mars_stamps"), brief(2000));
  EXPECT_EQ(row["cause"], "wrong_results");
  EXPECT_EQ(row["details"]["counts"]["corrupted"], 2000);
}

TEST(Touch, WrongBytesAfterTheStampAreFoundInTheSample) {
  const Json row = run_cell(stamped_point("mars_rests"), brief(2000));
  EXPECT_EQ(row["cause"], "wrong_results");
  const auto corrupted = row["details"]["counts"]["corrupted"].get<double>();
  EXPECT_GT(corrupted, 2000.0 / Stamped::kSampledOneOf / 2);
  EXPECT_LT(corrupted, 2000.0 / Stamped::kSampledOneOf * 2);
  EXPECT_FALSE(row.contains("figures"));
}

TEST(Touch, StampIsRejectedForSmallOrMixedPayloads) {
  Session session("feeding", "cpu", 0, {}, "test", brief());
  const auto why = [&](auto&& change) {
    Point point = stamped_point("gpu_ring");
    change(point);
    return session.resolve(values_of(point)).impossible;
  };
  EXPECT_EQ(why([](Point&) {}), "");
  EXPECT_EQ(why([](Point& p) { p.payload = 64; }), "");
  EXPECT_NE(why([](Point& p) {
              p.payload = 63;
            }).find("invalid value '63': --touch stamp needs at least the stamp's 64 bytes"),
            std::string::npos);
  EXPECT_NE(
      why([](Point& p) { p.arrivals = "poisson", p.rate = 1000, p.payload_mix = "64:0.5,4Ki:0.5"; }).find("one size"),
      std::string::npos);
}

}  // namespace
}  // namespace feedrate::test

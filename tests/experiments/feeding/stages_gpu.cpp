#include "tests/support/points.hpp"
#include "tests/support/stages.hpp"

namespace feedrate::test {
namespace {

class GpuStages : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

const std::vector<std::string> kCopied{"sent",       "dequeued",   "copied_in", "kernel_start",
                                       "kernel_end", "copied_out", "returned",  "collected"};

void expect_stages(const Point& point, const std::vector<std::string>& names) {
  RunSettings settings = brief(20'000);
  Session session("feeding", "cuda", 0, {}, "test", settings);
  const Json row = run_cell(session, point);
  expect_clean(row);
  std::puts(row["details"]["stages_ns"].dump().c_str());
  std::puts(row["details"]["clock"].dump().c_str());
  EXPECT_EQ(names_of(row["details"]["stages_ns"]), names);
  const double whole = row["figures"]["latency_ns"]["mean"];
  const Json& clock = row["details"]["clock"];
  // A stage that would end before it began counts as zero. The error is at most the difference between the clocks.
  EXPECT_NEAR(sum_of_means(row["details"]["stages_ns"]), whole, 0.02 * whole + clock["within_ns"].get<double>());
  EXPECT_LT(clock["within_ns"], 2000);
  EXPECT_LT(clock["events_within_ns"], 10'000);
  EXPECT_LE(clock["most_out_of_order_ns"].get<double>(),
            clock["within_ns"].get<double>() + clock["events_within_ns"].get<double>());
}

TEST_F(GpuStages, StagesOfTransfersAddUp) {
  expect_stages(lone("host_polled", "cuda", "pinned"), kCopied);
  expect_stages(lone("host_polled", "cuda", "pageable"), kCopied);
  expect_stages(lone("host_polled", "cuda", "mapped"),
                {"sent", "dequeued", "kernel_start", "kernel_end", "returned", "collected"});
}

TEST_F(GpuStages, StagesOfTheRingAddUp) {
  Point point = lone("gpu_ring", "cuda");
  expect_stages(point, {"sent", "kernel_start", "kernel_end", "returned", "collected"});
  test::set(point, "notify", "counter");
  expect_stages(point, {"sent", "claimed", "kernel_start", "kernel_end", "returned", "collected"});
  test::set(point, "slots", "vram");
  expect_stages(point, {"sent", "claimed", "kernel_start", "kernel_end", "returned", "collected"});
}

TEST_F(GpuStages, StagesOfBrokersAddUp) {
  auto names = kCopied;
  names.insert(names.begin() + 1, "brokered");
  expect_stages(lone("redis_list", "cuda", "pinned"), names);
}

}  // namespace
}  // namespace feedrate::test

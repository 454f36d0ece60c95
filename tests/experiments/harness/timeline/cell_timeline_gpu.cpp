#include "experiments/harness/timeline/cell_timeline.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/support/cupti.hpp"
#include "tests/support/stages.hpp"

namespace feedrate::test {
namespace {

class GpuCellTimeline : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    if (const auto reason = cupti_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    if (too_late_for_cupti()) GTEST_SKIP() << kTooLate;
  }
  /// Traces one run; returns its row.
  Json run(const Point& point) {
    CellTimeline trace(file, true);
    RunSettings settings = brief(20'000);
    Session session("feeding", "cuda", 0, {}, "test", settings);
    const Json row = session.run_cell(session.resolve(values_of(point)), 0, &trace);
    expect_clean(row);
    std::puts(row["gpu_use"].dump().c_str());
    return row;
  }
  std::set<std::string> categories() const {
    std::ifstream stream(file);
    std::set<std::string> found;
    const Json trace = Json::parse(stream);
    for (const Json& event : trace["traceEvents"]) found.insert(event.value("cat", ""));
    return found;
  }
  std::string file = std::filesystem::temp_directory_path() / "feedrate-trace-test.json";
};

TEST_F(GpuCellTimeline, TimelineShowsCopiesAndKernels) {
  const Json row = run(lone("host_polled", "cuda", "pinned"));
  const Json& use = row["gpu_use"];
  EXPECT_GT(use["kernel_share"], 0);
  EXPECT_GT(use["copy_to_device_share"], 0);
  EXPECT_GT(use["copy_to_host_share"], 0);
  EXPECT_LT(use["busy_share"], 0.9);  // a lone message spends most of its time between host and GPU
  EXPECT_GT(use["idle_gaps_ns"]["count"], 20'000);
  EXPECT_TRUE(categories().contains("producer 0"));
}

TEST_F(GpuCellTimeline, TimelineShowsTheResidentKernelAfterItHasEnded) {
  const Json row = run(lone("gpu_ring", "cuda"));
  EXPECT_GT(row["gpu_use"]["kernel_share"], 0.99);
  EXPECT_EQ(row["gpu_use"]["copy_share"], 0);
}

}  // namespace
}  // namespace feedrate::test

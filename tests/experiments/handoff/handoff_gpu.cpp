// Every way to hand over a tensor between processes that share a GPU.
#include "common/device/device.hpp"
#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class HandoffOnGpu : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  }
  Workplace place_;
};

TEST_P(HandoffOnGpu, WayIsVerified) {
  if (GetParam() == "redis_value") FEEDRATE_NEEDS_REDIS();
  for (const std::string use : {"cached", "first"}) {
    const Outcome outcome =
        place_.run({"run",  "--experiment",   "handoff", "--device",  "cuda", "--way",     GetParam(), "--use",
                    use,    "--bytes",        "5Mi",     "--tensors", "3",    "--readers", "2",        "--seconds",
                    "0.05", "--floor-rounds", "0",       "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto rows = measured_in(outcome.out);
    const auto cell = std::ranges::find_if(rows, [](const Json& row) { return row.at("kind") == "cell"; });
    ASSERT_NE(cell, rows.end()) << outcome.out;
    EXPECT_EQ(cell->at("status"), "ok") << *cell;
    EXPECT_GE(cell->at("details").at("verified").at("tensors"), 6);
    EXPECT_EQ(cell->at("details").at("verified").at("wrong"), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, HandoffOnGpu,
                         testing::Values("redis_value", "shm_copy", "shm_pinned", "ipc_vmm", "ipc_pool", "ipc_legacy",
                                         "store"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace feedrate::cli_test

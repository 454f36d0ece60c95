#include "tests/support/cells.hpp"
#include "tests/support/faulty_device.hpp"
#include "tests/support/strategies.hpp"
#include "variants/feeding/transfer.hpp"

namespace feedrate::test {
namespace {

std::vector<std::string> usable_transfers() {
  const auto device = open_cpu_device();
  std::vector<std::string> names;
  for (const auto& [name, entry] : Transfers::instance().entries()) {
    if (!entry.why_unsupported || entry.why_unsupported(device->info()).empty()) names.push_back(name);
  }
  return names;
}

class FaultyTransfer : public testing::TestWithParam<std::string> {
 protected:
  FaultyTransfer() {
    point.queue = "host_polled";
    point.transfer = GetParam();
    point.batch = 8;
    point.producers = 2;
  }
  void expect_a_failed_row_and_a_clean_next_cell(std::atomic<int>& fault, int call) {
    fault = call;
    const Json failed = run_cell(session, point);
    ASSERT_LE(fault.load(), 0) << "the call was never made";
    EXPECT_EQ(failed["status"], "failed") << failed.dump(1);
    EXPECT_EQ(failed["cause"], "error");
    EXPECT_NE(failed["reason"].get<std::string>().find("planted"), std::string::npos) << failed["reason"];
    EXPECT_FALSE(failed.contains("figures"));
    fault = 0;
    expect_clean(run_cell(session, point, 1));
  }

  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
  Session session{"feeding", "cpu", 0, {}, "test", brief(2000), std::make_unique<FaultyDevice>(faults)};
  Point point;
};

TEST_P(FaultyTransfer, FailedAllocationFailsOnlyItsCell) {
  for (const int call : {1, 4, 7}) expect_a_failed_row_and_a_clean_next_cell(faults->allocation, call);
}

TEST_P(FaultyTransfer, FailedCopyFailsOnlyItsCell) {
  if (GetParam() == "mapped") GTEST_SKIP() << "this transfer copies nothing";
  for (const int call : {1, 2, 7}) expect_a_failed_row_and_a_clean_next_cell(faults->copy, call);
}

INSTANTIATE_TEST_SUITE_P(Each, FaultyTransfer, testing::ValuesIn(usable_transfers()),
                         [](const auto& info) { return info.param; });

TEST(FaultyOverlap, FaultFailsOnlyItsCell) {
  const auto faults = std::make_shared<Faults>();
  RunSettings settings = brief();
  settings.seconds = 0.01;
  Session session{"overlap", "cpu", 0, {}, "test", settings, std::make_unique<FaultyDevice>(faults)};
  const Resolution cell = session.resolve({{"pipeline", std::string("copy_process_copy")},
                                           {"item", std::uint64_t{4096}},
                                           {"items", std::uint64_t{4}},
                                           {"cost-us", 10.0}});
  for (auto* const fault : {&faults->allocation, &faults->copy}) {
    *fault = 3;
    const Json failed = session.run_cell(cell, 0);
    EXPECT_EQ(failed["status"], "failed") << failed.dump(1);
    EXPECT_NE(failed["reason"].get<std::string>().find("planted"), std::string::npos) << failed["reason"];
    *fault = 0;
    EXPECT_EQ(session.run_cell(cell, 1)["status"], "ok");
  }
}

}  // namespace
}  // namespace feedrate::test

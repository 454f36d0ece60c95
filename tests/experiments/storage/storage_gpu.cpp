#include "common/error.hpp"
#include "tests/support/storage_engines.hpp"
#include "tests/support/storage_rings.hpp"

namespace feedrate {
namespace {

class StorageEngineOnGpu : public testing::TestWithParam<std::string> {};

TEST_P(StorageEngineOnGpu, MovesEveryBlock) {
  const auto device = open_device("cuda");
  test::EngineChecks checks(GetParam(), *device);
  using storage::Operation;
  if (const auto reason = checks.why_unsupported(Operation::read, false); !reason.empty()) GTEST_SKIP() << reason;
  try {
    checks.reports_the_end_of_a_file();
  } catch (const Failure& failure) {  // cuFile supports few file systems
    if (std::string(failure.what()).find("error 5027") != std::string::npos) GTEST_SKIP() << failure.what();
    throw;
  }
  for (const bool direct : {false, true}) {
    if (checks.why_unsupported(Operation::read, direct).empty()) checks.reads_every_block(direct);
    if (checks.why_unsupported(Operation::write, direct).empty()) checks.writes_every_block(direct);
  }
  if (GetParam() != "pread" && GetParam() != "cufile") checks.closes_while_requests_are_in_flight();
}

class GpuRingsOnGpu : public testing::Test {
 protected:
  std::unique_ptr<Device> device = open_device("cuda");
  test::RingChecks checks{*device};
};

TEST_F(GpuRingsOnGpu, EveryBlockIsCheckedOnce) { checks.every_block_is_checked_once(); }
TEST_F(GpuRingsOnGpu, CacheThatHoldsEverythingLoadsEachBlockOnce) {
  checks.cache_that_holds_everything_loads_each_block_once();
}
TEST_F(GpuRingsOnGpu, SmallCacheReplacesBlocks) { checks.small_cache_replaces_blocks(); }
TEST_F(GpuRingsOnGpu, LateAndReorderedCompletionsAreWaitedFor) {
  checks.late_and_reordered_completions_are_waited_for();
}
TEST_F(GpuRingsOnGpu, FaultsAreReportedWithFileAndOffset) { checks.faults_are_reported_with_file_and_offset(); }

INSTANTIATE_TEST_SUITE_P(Each, StorageEngineOnGpu, testing::ValuesIn(test::file_engines()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace feedrate

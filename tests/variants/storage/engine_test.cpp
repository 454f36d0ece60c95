#include <fcntl.h>

#include "tests/support/storage_engines.hpp"
#include "libraries/storage/files.hpp"
#include "variants/storage/engine.hpp"

namespace feedrate {
namespace {

class StorageEngine : public testing::TestWithParam<std::string> {
 protected:
  void supported(storage::Operation operation, bool direct) {
    if (auto reason = checks.why_unsupported(operation, direct); !reason.empty()) GTEST_SKIP() << reason;
  }
  std::unique_ptr<Device> device = open_cpu_device();
  test::EngineChecks checks{GetParam(), *device};
};

TEST(KvikioEngine, NeedsCudaBeforeItNeedsTheLibrary) {
  const std::string why = storage::Engines::instance().get("--engine", "kvikio").unavailable();
  if (!cuda_unavailable().empty()) {
    EXPECT_EQ(why, cuda_unavailable());
  }
}

TEST_P(StorageEngine, ReadsEveryBlock) {
  supported(storage::Operation::read, false);
  if (!IsSkipped()) checks.reads_every_block(false);
}
TEST_P(StorageEngine, ReadsEveryBlockDirectly) {
  supported(storage::Operation::read, true);
  if (!IsSkipped()) checks.reads_every_block(true);
}
TEST_P(StorageEngine, ReportsTheEndOfAFile) {
  supported(storage::Operation::read, false);
  if (!IsSkipped()) checks.reports_the_end_of_a_file();
}
TEST_P(StorageEngine, ReportsAnErrorAndContinues) {
  supported(storage::Operation::read, false);
  if (GetParam() == "mmap") GTEST_SKIP() << "this file cannot be mapped";
  if (!IsSkipped()) checks.reports_an_error_and_continues();
}
TEST_P(StorageEngine, ReportsAMissingFile) {
  supported(storage::Operation::read, false);
  if (!IsSkipped()) checks.reports_a_missing_file();
}
TEST_P(StorageEngine, WritesEveryBlock) {
  supported(storage::Operation::write, false);
  if (!IsSkipped()) checks.writes_every_block(false);
}
TEST_P(StorageEngine, WritesEveryBlockDirectly) {
  supported(storage::Operation::write, true);
  if (!IsSkipped()) checks.writes_every_block(true);
}
TEST_P(StorageEngine, ClosesWhileRequestsAreInFlight) {
  supported(storage::Operation::read, false);
  if (!IsSkipped() && GetParam() != "pread" && GetParam() != "cufile") checks.closes_while_requests_are_in_flight();
}

// procfs, like tmpfs on many kernels, rejects O_DIRECT.
TEST(StorageFiles, FileWithoutDirectAccessIsReportedWithARemedy) {
  try {
    const storage::Descriptor file("/proc/self/status", O_RDONLY | O_DIRECT);
    FAIL() << "the file was opened";
  } catch (const Failure& failure) {
    const std::string text = failure.what();
    EXPECT_NE(text.find("/proc/self/status"), std::string::npos) << text;
    EXPECT_NE(text.find("use a folder on a drive"), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, StorageEngine, testing::ValuesIn(test::file_engines()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace feedrate

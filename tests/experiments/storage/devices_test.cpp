// Block devices as targets: a loop device of the test's own.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <optional>

#include "experiments/harness/measure/session.hpp"
#include "experiments/storage/file_set.hpp"
#include "tests/support/storage_errors.hpp"
#include "tests/support/temp_dir.hpp"

namespace feedrate::storage {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class Devices : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device.emplace(folder / "medium", 4 * kMiB);
    } catch (const std::system_error& error) {
      GTEST_SKIP() << "needs a loop device: " << error.what();
    }
  }
  Json cell(const char* operation, std::uint64_t size, const char* direct = "yes") {
    const Resolution point = session.resolve({{"engine", std::string("pread_pinned")},
                                              {"operation", std::string(operation)},
                                              {"direct", std::string(direct)},
                                              {"target", device->path()},
                                              {"overwrite", std::string("yes")},
                                              {"size", size},
                                              {"block", std::uint64_t{16384}},
                                              {"depth", std::uint64_t{4}}});
    EXPECT_EQ(point.impossible, "");
    return session.run_cell(point, repetition++);
  }
  test::TempDir folder;
  std::optional<test::FileDevice> device;
  Session session{"storage", "cpu", 0, {}, "test", {.seconds = 0.02}};
  unsigned repetition = 0;
};

TEST_F(Devices, ReadsAndWritesOfSeveralSizesUseTheSameDevice) {
  for (const std::uint64_t size : {2 * kMiB, 4 * kMiB}) {
    for (const char* operation : {"write", "read"}) {
      const Json row = cell(operation, size);
      EXPECT_NE(row["status"], "failed") << operation << " " << size << ": " << row["reason"];
    }
  }
}

TEST_F(Devices, PageCacheOfADeviceIsKept) {
  const Json row = cell("read", 2 * kMiB, "no");
  EXPECT_NE(row["status"], "failed") << row["reason"];
}

TEST_F(Devices, DeviceIsHeldWhileItsContentsAreNeeded) {
  const auto claims = [this] {
    const int found = ::open(device->path().c_str(), O_RDWR | O_EXCL | O_CLOEXEC);  // as mount(8) does
    if (found >= 0) ::close(found);
    return found >= 0;
  };
  EXPECT_TRUE(claims());
  {
    const FileSet files({.bytes = kMiB, .devices = {device->path()}}, 1, 0);
    EXPECT_FALSE(claims());
  }
  EXPECT_TRUE(claims());
}

TEST_F(Devices, DeviceThatIsNamedTwiceIsRejected) {
  EXPECT_THROW(FileSet::require_room({.bytes = kMiB, .devices = {device->path(), device->path()}}), BadInput);
}

}  // namespace
}  // namespace feedrate::storage

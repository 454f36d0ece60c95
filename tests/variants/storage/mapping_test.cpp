#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <vector>

#include "libraries/storage/files.hpp"
#include "tests/support/device_around.hpp"
#include "tests/support/storage_engines.hpp"
#include "variants/storage/engine.hpp"
#include "variants/storage/guarded_mapping.hpp"
#include "variants/storage/mapping_trial.hpp"

namespace feedrate {
namespace {

constexpr std::size_t kPageBytes = 4096, kPages = 200;

class GuardedMappingTest : public testing::Test {
 protected:
  static char read(const std::byte* at) { return *reinterpret_cast<const volatile char*>(at); }
  test::TempDir folder;
  storage::File file = test::content_file(folder / "a", kPages* kPageBytes, 5);
  storage::Descriptor open{file.path, O_RDONLY};
};

TEST_F(GuardedMappingTest, LostPagesAreMarkedAndTheProcessContinues) {
  const storage::GuardedMapping mapping(file, open.get());
  std::uint64_t first = 0;
  EXPECT_EQ(storage::count_wrong(mapping.data(), file.bytes, 5, 0, first), 0u);
  EXPECT_TRUE(mapping.intact(0, file.bytes));
  std::filesystem::resize_file(file.path, 100 * kPageBytes);
  EXPECT_TRUE(mapping.intact(0, file.bytes)) << "no access has failed so far";
  for (const std::size_t page : {99u, 100u, 164u, 199u}) read(mapping.data() + page * kPageBytes + 17);
  EXPECT_TRUE(mapping.intact(0, 100 * kPageBytes));
  EXPECT_FALSE(mapping.intact(100 * kPageBytes, 1));
  EXPECT_FALSE(mapping.intact(0, file.bytes));
  EXPECT_FALSE(mapping.intact(101 * kPageBytes - 1, 1));
  EXPECT_TRUE(mapping.intact(101 * kPageBytes, 63 * kPageBytes)) << "these pages were not accessed";
  EXPECT_FALSE(mapping.intact(163 * kPageBytes, 2 * kPageBytes));
  EXPECT_FALSE(mapping.intact(199 * kPageBytes, kPageBytes));
  EXPECT_TRUE(mapping.intact(199 * kPageBytes, 0));
}

TEST_F(GuardedMappingTest, ThreadsLosePagesOfManyMappingsAtOnce) {
  std::filesystem::resize_file(file.path, kPageBytes);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int n = 0; n < 30; ++n) {
        std::vector<storage::GuardedMapping> mappings;
        for (int i = 0; i < 3; ++i) mappings.emplace_back(file, open.get());
        for (std::size_t page = 0; page < kPages; page += 7) read(mappings[page % 3].data() + page * kPageBytes);
        EXPECT_TRUE(mappings[0].intact(0, kPageBytes));
        EXPECT_FALSE(mappings[1].intact(7 * kPageBytes, kPageBytes));
        EXPECT_TRUE(mappings[2].intact(7 * kPageBytes, kPageBytes));
      }
    });
  }
}

/// The handler must leave other faults to the handler that was installed before it. Each test of this kind runs in a
/// process that has not installed the handler yet, because it is installed once.
using GuardedMappingDeathTest = GuardedMappingTest;

TEST_F(GuardedMappingDeathTest, FaultElsewhereEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_DFL);
        const storage::GuardedMapping mapping(file, open.get());
        void* const other = ::mmap(nullptr, file.bytes, PROT_READ, MAP_SHARED, open.get(), 0);
        std::filesystem::resize_file(file.path, 0);
        read(mapping.data());
        read(static_cast<const std::byte*>(other));
        ::_exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST_F(GuardedMappingDeathTest, FaultElsewhereReachesTheEarlierHandler) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const int flags : {0, SA_SIGINFO}) {
    EXPECT_EXIT(
        {
          struct sigaction earlier {};
          earlier.sa_flags = flags;
          if (flags == 0) earlier.sa_handler = [](int) { ::_exit(7); };
          if (flags != 0) earlier.sa_sigaction = [](int, siginfo_t*, void*) { ::_exit(7); };
          ::sigaction(SIGBUS, &earlier, nullptr);
          const storage::GuardedMapping mapping(file, open.get());
          std::filesystem::resize_file(file.path, 0);
          read(mapping.data());
          ::raise(SIGBUS);
          ::_exit(0);
        },
        testing::ExitedWithCode(7), "");
  }
}

class MmapSlots : public testing::Test {
 protected:
  std::unique_ptr<Device> device = open_cpu_device();
  test::EngineChecks checks{"mmap", *device, {{"mapping", std::string("slots")}}};
};
TEST_F(MmapSlots, ReadsEveryBlock) { checks.reads_every_block(false); }
TEST_F(MmapSlots, ReportsTheEndOfAFile) { checks.reports_the_end_of_a_file(); }
TEST_F(MmapSlots, ClosesWhileRequestsAreInFlight) { checks.closes_while_requests_are_in_flight(); }

TEST_F(GuardedMappingTest, MappingIsNotRegisteredIfATrialIsNotPossible) {
  EXPECT_NE(storage::why_not_registered(file, open.get()).find("only the feedrate executable"), std::string::npos)
      << "this is not the feedrate executable";
}

TEST_F(GuardedMappingTest, GpuWithoutASuccessfulTrialCopiesThroughSlots) {
  struct LikeAGpu final : test::DeviceAround {
    std::string_view kind() const override { return "gpu"; }
    Buffer pin(std::byte* data, std::size_t bytes, Access access) override {
      EXPECT_EQ(access, Access::read_write) << "the mapping must not be registered";
      return DeviceAround::pin(data, bytes, access);
    }
  } device;
  const std::vector<storage::File> files{file};
  const auto engine = storage::Engines::instance()
                          .get("", "mmap")
                          .make({{.files = files, .device = device, .block = kPageBytes, .depth = 1}});
  const auto path = engine->path();
  EXPECT_EQ(path.at("mode"), "populated mapping, pinned slots");
  EXPECT_NE(path.at("why_slots").find("a trial is not possible"), std::string::npos);
  const Buffer memory = device.allocate_device(kPageBytes, Fresh::poisoned);
  ASSERT_TRUE(engine->submit({1, 0, kPageBytes, kPageBytes, memory.data()}));
  storage::Completion ended;
  while (engine->poll({&ended, 1}) == 0) std::this_thread::yield();
  EXPECT_EQ(ended.bytes, kPageBytes);
  EXPECT_EQ(test::wrong_words(device, memory.data(), kPageBytes, 5, kPageBytes), 0u);
}

}  // namespace
}  // namespace feedrate
